package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const recordsPerCopy = 1000

// fill writes the records to copy, evenly over the partitions.
func (r run) fill() (done, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(r.bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	)
	if err != nil {
		return done{}, err
	}
	defer client.Close()
	began, records := time.Now(), r.number("records")
	refused := kgo.AbortingFirstErrPromise(client)
	for i := range records {
		record := &kgo.Record{Topic: r.topic, Partition: int32(i % r.partitions), Value: value}
		client.Produce(context.Background(), record, refused.Promise())
	}
	err = errors.Join(client.Flush(context.Background()), refused.Err())
	return summed(nil, records, time.Since(began)), err
}

// copy consumes, transforms and produces, with the offsets in each transaction. The clock starts
// when the first records have come, so that joining the group is not measured.
func (r run) copy() (done, error) {
	ctx := context.Background()
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(r.bootstrap),
		r.generation(),
		kgo.TransactionalID(r.options["group"]),
		kgo.ConsumerGroup(r.options["group"]),
		kgo.ConsumeTopics(r.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
	)
	if err != nil {
		return done{}, err
	}
	defer session.Close()
	var (
		began   time.Time
		commits []time.Duration
		copied  int
	)
	for records := r.number("records"); copied < records; {
		fetches := session.PollRecords(ctx, recordsPerCopy)
		if err := fetches.Err(); err != nil {
			return done{}, err
		}
		if began.IsZero() {
			began = time.Now()
		}
		if err := session.Begin(); err != nil {
			return done{}, err
		}
		refused := kgo.AbortingFirstErrPromise(session.Client())
		fetches.EachRecord(func(read *kgo.Record) {
			written := &kgo.Record{
				Topic: r.options["target"], Partition: read.Partition, Value: read.Value,
			}
			session.Produce(ctx, written, refused.Promise())
		})
		if err := errors.Join(session.Client().Flush(ctx), refused.Err()); err != nil {
			return done{}, err
		}
		start := time.Now()
		committed, err := session.End(ctx, kgo.TryCommit)
		if err != nil {
			return done{}, err
		}
		if !committed {
			return done{}, errors.New("a rebalance came between")
		}
		commits = append(commits, time.Since(start))
		copied += fetches.NumRecords()
	}
	return summed(commits, copied, time.Since(began)), nil
}
