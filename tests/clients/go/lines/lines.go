// Package lines is the line protocol that tests/clients/piped.py describes.
package lines

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Wait bounds one answer.
const Wait = 20 * time.Second

// Latest and Earliest stand for a time or an offset.
const (
	Latest   = -1
	Earliest = -2
)

// Command holds the arguments of every operation; each reads its own.
type Command struct {
	Op         string
	Topic      string
	Partition  int32
	Count      int32
	Configs    map[string]string
	Delete     []string
	Offset     int64
	At         int64
	Records    []Record
	Codec      string
	Acks       int16
	Idempotent bool
	Reads      [][2]int64
	Reset      string
	Member     int
	Group      string
	Topics     []string
	Isolation  string
	Transactor int
	ID         string
	Commits    bool
}

// Record is one to write, or one that was read.
type Record struct {
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers"`
	Timestamp *int64   `json:"timestamp"`
	Partition *int32   `json:"partition"`
	Offset    int64    `json:"offset"`
}

// Time of the record, or of now where none was given.
func (r Record) Time() time.Time {
	if r.Timestamp == nil {
		return time.Now()
	}
	return time.UnixMilli(*r.Timestamp)
}

// Manual tells whether the records name their partitions.
func (c Command) Manual() bool {
	return len(c.Records) > 0 && c.Records[0].Partition != nil
}

// Committed tells whether a consumer is to see the records of committed transactions alone.
func (c Command) Committed() bool {
	return c.Isolation == "read_committed"
}

// Header is a pair of name and value on the line.
type Header struct {
	Name  string
	Value []byte
}

// MarshalJSON writes the pair.
func (h Header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.Name, h.Value})
}

// UnmarshalJSON reads the pair.
func (h *Header) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&h.Name, &h.Value})
}

// Serve answers commands until the input ends; codeOf finds the broker's code in an error.
func Serve(answer func(Command) (any, error), codeOf func(error) (int16, bool)) {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		var command Command
		if err == nil {
			err = json.Unmarshal(line, &command)
		}
		var ok any
		if err == nil {
			ok, err = answer(command)
		}
		if err == nil {
			err = out.Encode(map[string]any{"ok": ok})
		} else {
			code, known := codeOf(err)
			if !known {
				code = -1
			}
			err = out.Encode(map[string]any{"error": code, "text": err.Error()})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
