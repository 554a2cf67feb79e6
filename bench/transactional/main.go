// transactional puts transactions on a broker with franz-go and prints what it did as JSON.
//
//	transactional write BOOTSTRAP TOPIC PARTITIONS generation=2 producers=1 per_second=0 milliseconds=2000
//	transactional fill  BOOTSTRAP TOPIC PARTITIONS records=100000
//	transactional copy  BOOTSTRAP SOURCE PARTITIONS generation=2 target=T group=G records=100000
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// done is the result of a run; the latencies are those of commits alone.
type done struct {
	Transactions int     `json:"transactions"`
	Records      int     `json:"records"`
	Seconds      float64 `json:"seconds"`
	P50us        float64 `json:"p50_us"`
	P99us        float64 `json:"p99_us"`
}

type run struct {
	bootstrap, topic string
	partitions       int
	options          map[string]string
}

func main() {
	if len(os.Args) < 5 {
		fail(fmt.Errorf("usage: %s write|fill|copy BOOTSTRAP TOPIC PARTITIONS [name=value]...", os.Args[0]))
	}
	r := run{bootstrap: os.Args[2], topic: os.Args[3], options: map[string]string{}}
	var err error
	if r.partitions, err = strconv.Atoi(os.Args[4]); err != nil {
		fail(err)
	}
	for _, option := range os.Args[5:] {
		name, value, _ := strings.Cut(option, "=")
		r.options[name] = value
	}
	kinds := map[string]func() (done, error){"write": r.write, "fill": r.fill, "copy": r.copy}
	kind, known := kinds[os.Args[1]]
	if !known {
		fail(fmt.Errorf("no workload %q", os.Args[1]))
	}
	result, err := kind()
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (r run) number(name string) int {
	number, err := strconv.Atoi(r.options[name])
	if err != nil {
		fail(fmt.Errorf("%s: %w", name, err))
	}
	return number
}

// generation is the last version of the protocol to use: with 1 the client itself adds partitions
// to a transaction, with 2 the broker does as records come (KIP-890).
func (r run) generation() kgo.Opt {
	if r.number("generation") == 1 {
		return kgo.MaxVersions(kversion.V3_8_0())
	}
	return kgo.MaxVersions(nil)
}

// summed is the result of a run with this many records and these commit latencies.
func summed(commits []time.Duration, records int, took time.Duration) done {
	slices.Sort(commits)
	at := func(share float64) float64 {
		if len(commits) == 0 {
			return 0
		}
		return float64(commits[int(share*float64(len(commits)-1))].Nanoseconds()) / 1e3
	}
	return done{len(commits), records, took.Seconds(), at(0.5), at(0.99)}
}
