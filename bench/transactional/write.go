package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const recordsPerTransaction = 100

var value = bytes.Repeat([]byte("v"), 100)

// write commits transactions of 100 records of 100 bytes, over all partitions: without pauses, or
// `per_second` transactions a second by all producers together.
func (r run) write() (done, error) {
	producers, milliseconds := r.number("producers"), r.number("milliseconds")
	clients := make([]*kgo.Client, producers)
	for i := range clients {
		client, err := r.transactional(fmt.Sprintf("%s-%d", r.topic, i))
		if err != nil {
			return done{}, err
		}
		defer client.Close()
		// The first transaction finds leader and coordinator.
		if _, err := r.transact(client); err != nil {
			return done{}, err
		}
		clients[i] = client
	}
	var (
		all      sync.WaitGroup
		lock     sync.Mutex
		commits  []time.Duration
		failures []error
	)
	var pause time.Duration
	if rate := r.number("per_second"); rate > 0 {
		pause = time.Second * time.Duration(producers) / time.Duration(rate)
	}
	began := time.Now()
	until := began.Add(time.Duration(milliseconds) * time.Millisecond)
	for i, client := range clients {
		first := began.Add(pause * time.Duration(i) / time.Duration(producers)) // not all at once
		all.Go(func() {
			var mine []time.Duration
			var err error
			for turn := first; err == nil && time.Now().Before(until); turn = turn.Add(pause) {
				time.Sleep(time.Until(turn))
				var took time.Duration
				if took, err = r.transact(client); err == nil {
					mine = append(mine, took)
				}
			}
			lock.Lock()
			defer lock.Unlock()
			commits, failures = append(commits, mine...), append(failures, err)
		})
	}
	all.Wait()
	took := time.Since(began)
	return summed(commits, len(commits)*recordsPerTransaction, took), errors.Join(failures...)
}

func (r run) transactional(id string) (*kgo.Client, error) {
	return kgo.NewClient(
		kgo.SeedBrokers(r.bootstrap),
		r.generation(),
		kgo.TransactionalID(id),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
	)
}

// transact returns how long the commit took, after all records were acknowledged.
func (r run) transact(client *kgo.Client) (time.Duration, error) {
	ctx := context.Background()
	if err := client.BeginTransaction(); err != nil {
		return 0, err
	}
	refused := kgo.AbortingFirstErrPromise(client)
	for i := range recordsPerTransaction {
		record := &kgo.Record{Topic: r.topic, Partition: int32(i % r.partitions), Value: value}
		client.Produce(ctx, record, refused.Promise())
	}
	if err := errors.Join(client.Flush(ctx), refused.Err()); err != nil {
		return 0, err
	}
	began := time.Now()
	err := client.EndTransaction(ctx, kgo.TryCommit)
	return time.Since(began), err
}
