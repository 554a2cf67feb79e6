package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"penstock/clients/lines"
)

// copyRecords copies with a session that knows when a rebalance forbids to commit.
func copyRecords(ctx context.Context, job lines.Job) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(job.Bootstrap),
		kgo.TransactionalID(job.ID),
		kgo.ConsumerGroup(job.Group),
		kgo.ConsumeTopics(job.Source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.FetchMaxWait(fetchWait),
		kgo.SessionTimeout(lines.CopySession),
		kgo.HeartbeatInterval(lines.CopyHeartbeat),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	for ctx.Err() == nil {
		fetches := session.PollRecords(ctx, lines.CopyRecords)
		if err := fetches.Err(); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := copyBatch(session, job, fetches); err != nil {
			return err
		}
	}
	return nil
}

func copyBatch(session *kgo.GroupTransactSession, job lines.Job, fetches kgo.Fetches) error {
	ctx := context.Background() // a transaction that was begun is ended
	if err := session.Begin(); err != nil {
		return err
	}
	refused := kgo.AbortingFirstErrPromise(session.Client())
	fetches.EachRecord(func(r *kgo.Record) {
		made := &kgo.Record{
			Topic: job.Target, Partition: r.Partition, Value: lines.Copied(r.Value),
		}
		session.Produce(ctx, made, refused.Promise())
	})
	sent := refused.Err() == nil
	_, err := session.End(ctx, kgo.TransactionEndTry(sent && !job.Aborts()))
	return err
}
