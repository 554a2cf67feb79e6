package lines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// Member is what a program is told that is one member of a group; tests/clients/lone_member.py
// says what it does.
type Member struct {
	Bootstrap, Group, Topic string
	Settings                Settings
}

// Settings of a member by Kafka's names; one that is not among them is refused.
type Settings struct {
	Session   Millis `json:"session.timeout.ms"`
	Heartbeat Millis `json:"heartbeat.interval.ms"`
	Instance  string `json:"group.instance.id"`
	Refresh   Millis `json:"metadata.max.age.ms"`
}

// Millis is a setting in milliseconds.
type Millis int64

// Duration of the setting.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// RunMember runs the member that `member` names on the command line until it is killed.
func RunMember(run func(Member, *Held) error) {
	if len(os.Args) < 2 || os.Args[1] != "member" {
		return
	}
	a := os.Args[2:]
	given := Member{Bootstrap: a[0], Group: a[1], Topic: a[2]}
	settings := json.NewDecoder(bytes.NewReader([]byte(a[3])))
	settings.DisallowUnknownFields()
	err := settings.Decode(&given.Settings)
	if err == nil {
		err = run(given, &Held{last: -1})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Held is how many partitions the member told that it holds.
type Held struct {
	lock sync.Mutex
	last int
}

// Tell prints the count if it is another than the last.
func (h *Held) Tell(count int) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if count != h.last {
		h.last = count
		fmt.Println(count)
	}
}
