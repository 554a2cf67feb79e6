// share reads a queue with franz-go: bootstrap address, group, topic, number of records.
//
// Records are numbers. One that ends in 3 is released the first time, one that ends in 5 is
// rejected, one that ends in 7 is renewed and then accepted, all others are accepted. It prints a
// line for each delivery, and ends when all records are done.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	wanted, err := strconv.Atoi(os.Args[4])
	check(err)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]),
		kgo.ShareGroup(os.Args[2]),
		kgo.ConsumeTopics(os.Args[3]),
		kgo.ShareMaxRecords(50),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) { check(results.Error()) }),
	)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	done := map[int]bool{}
	for len(done) < wanted {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		var renewed []*kgo.Record
		fetches.EachRecord(func(record *kgo.Record) {
			number, err := strconv.Atoi(string(record.Value))
			check(err)
			last := number % 10
			verdict, name := kgo.AckAccept, "accept"
			switch {
			case last == 3 && record.DeliveryCount() == 1:
				verdict, name = kgo.AckRelease, "release"
			case last == 5:
				verdict, name = kgo.AckReject, "reject"
			case last == 7:
				verdict, name = kgo.AckRenew, "renew"
				renewed = append(renewed, record)
			}
			record.Ack(verdict)
			if verdict != kgo.AckRelease {
				done[number] = true
			}
			fmt.Println(number, record.DeliveryCount(), name)
		})
		if len(renewed) > 0 {
			check(client.FlushAcks(ctx))
			client.MarkAcks(kgo.AckAccept, renewed...)
		}
	}
	check(client.FlushAcks(ctx))
	client.Close()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
