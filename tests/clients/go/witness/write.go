package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	pause    = 4 * time.Millisecond
	inFlight = 300
)

// write sends numbered values to the partitions in turn, and tells what became of each.
func write(ctx context.Context, bootstrap, topic, prefix string, partitions int) error {
	producer, err := kgo.NewClient(append(patient(bootstrap),
		kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.RecordDeliveryTimeout(wait),
		kgo.MaxBufferedRecords(inFlight),
	)...)
	if err != nil {
		return err
	}
	defer producer.Close()
	for number := 0; ctx.Err() == nil; number++ {
		record := &kgo.Record{
			Partition: int32(number % partitions),
			Value:     fmt.Appendf(nil, "%s.%d", prefix, number),
		}
		// Not by ctx: what was begun is to be told of.
		producer.Produce(context.Background(), record, told)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	late, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return producer.Flush(late)
}

func told(record *kgo.Record, err error) {
	event := map[string]any{"value": string(record.Value), "partition": record.Partition}
	if err != nil {
		event["message"] = err.Error()
		tell("producer_send_error", event)
		return
	}
	event["offset"] = record.Offset
	tell("producer_send_success", event)
}
