package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

// read tells of every record that is committed, from the start of each partition.
func read(ctx context.Context, bootstrap, topic string, partitions int) error {
	starts := map[int32]kgo.Offset{}
	for partition := range partitions {
		starts[int32(partition)] = kgo.NewOffset().At(0)
	}
	reader, err := kgo.NewClient(append(patient(bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)...)
	if err != nil {
		return err
	}
	defer reader.Close()
	for ctx.Err() == nil {
		fetches := reader.PollFetches(ctx)
		fetches.EachRecord(tellRecord)
		if err := failure(fetches); err != nil {
			return err
		}
	}
	return nil
}

// failure is what the client does not get over by itself. Data loss is never expected here.
func failure(fetches kgo.Fetches) error {
	for _, each := range fetches.Errors() {
		var lost *kgo.ErrDataLoss
		if errors.As(each.Err, &lost) || errors.Is(each.Err, kgo.ErrClientClosed) {
			return each.Err
		}
		if !errors.Is(each.Err, context.Canceled) {
			fmt.Fprintln(os.Stderr, each.Err)
		}
	}
	return nil
}
