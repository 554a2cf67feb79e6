package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"penstock/clients/lines"
)

const (
	fetchWait = 100 * time.Millisecond
	heartbeat = 300 * time.Millisecond
)

type place struct {
	topic     string
	partition int32
}

// member is a consumer in a group, with what its callbacks said it holds.
type member struct {
	*kgo.Client
	lock    sync.Mutex
	held    map[place]bool
	changed func(count int)
}

// callbacks are the options by which the member hears what it holds.
func (m *member) callbacks() []kgo.Opt {
	lost := func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { m.mark(gone, false) }
	return []kgo.Opt{
		kgo.OnPartitionsAssigned(
			func(_ context.Context, _ *kgo.Client, got map[string][]int32) { m.mark(got, true) }),
		kgo.OnPartitionsRevoked(lost),
		kgo.OnPartitionsLost(lost),
	}
}

func (c *client) join(command lines.Command) error {
	m := &member{held: map[place]bool{}, changed: func(int) {}}
	consumer, err := kgo.NewClient(append(m.callbacks(),
		kgo.SeedBrokers(c.bootstrap),
		kgo.ConsumerGroup(command.Group),
		kgo.ConsumeTopics(command.Topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(heartbeat),
		kgo.FetchMaxWait(fetchWait),
		kgo.FetchIsolationLevel(isolation(command)),
	)...)
	if err == nil {
		m.Client = consumer
		c.members[command.Member] = m
	}
	return err
}

func isolation(command lines.Command) kgo.IsolationLevel {
	if command.Committed() {
		return kgo.ReadCommitted()
	}
	return kgo.ReadUncommitted()
}

func (m *member) mark(changed map[string][]int32, held bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for topic, partitions := range changed {
		for _, partition := range partitions {
			if held {
				m.held[place{topic, partition}] = true
			} else {
				delete(m.held, place{topic, partition})
			}
		}
	}
	m.changed(len(m.held))
}

func (m *member) poll() (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchWait)
	defer cancel()
	records := []lines.Record{}
	fetches := m.PollFetches(ctx)
	if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	fetches.EachRecord(func(r *kgo.Record) { records = append(records, line(r)) })
	m.lock.Lock()
	defer m.lock.Unlock()
	held := [][]any{}
	for at := range m.held {
		held = append(held, []any{at.topic, at.partition})
	}
	return []any{records, held}, nil
}

func (m *member) commit(ctx context.Context, command lines.Command) error {
	var failed error
	m.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{
		command.Topic: {command.Partition: {Epoch: -1, Offset: command.Offset}},
	}, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, _ *kmsg.OffsetCommitResponse, err error) {
		failed = err
	})
	return failed
}
