// witness writes and reads with franz-go while faults happen, and prints what it is told as one JSON
// object a line, in the words of Kafka's VerifiableProducer and VerifiableConsumer.
//
//	witness write BOOTSTRAP TOPIC PREFIX PARTITIONS   idempotent, acks=all
//	witness read BOOTSTRAP TOPIC PARTITIONS           every partition from its start, committed only
//	witness member BOOTSTRAP TOPIC GROUP              commits whatever it has read
//
// Each runs until SIGTERM.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const wait = 60 * time.Second

// patient are options of clients that outlast a fault, and notice its end soon.
func patient(bootstrap string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.DialTimeout(2 * time.Second),
		kgo.RequestTimeoutOverhead(5 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}
}

var printing sync.Mutex

// tell prints an event with its name and the moment.
func tell(name string, event map[string]any) {
	event["name"], event["timestamp"] = name, now()
	line, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

func now() int64 { return time.Now().UnixMilli() }

func tellRecord(record *kgo.Record) {
	tell("record_data", map[string]any{
		"partition":    record.Partition,
		"offset":       record.Offset,
		"value":        string(record.Value),
		"leader_epoch": record.LeaderEpoch,
	})
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tell("shutdown_complete", map[string]any{})
}

func run(ctx context.Context, a []string) error {
	switch {
	case len(a) == 5 && a[0] == "write":
		partitions, err := strconv.Atoi(a[4])
		if err != nil {
			return err
		}
		return write(ctx, a[1], a[2], a[3], partitions)
	case len(a) == 4 && a[0] == "read":
		partitions, err := strconv.Atoi(a[3])
		if err != nil {
			return err
		}
		return read(ctx, a[1], a[2], partitions)
	case len(a) == 4 && a[0] == "member":
		return member(ctx, a[1], a[2], a[3])
	}
	return fmt.Errorf("write, read or member, with their arguments; not %q", a)
}
