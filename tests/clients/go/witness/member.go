package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	session   = 6 * time.Second
	heartbeat = 300 * time.Millisecond
)

// member reads its share of a group and commits after every poll. Its strategy is an eager one, so
// that each assignment is the whole share of a generation.
func member(ctx context.Context, bootstrap, topic, group string) error {
	m, err := kgo.NewClient(append(patient(bootstrap),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.SessionTimeout(session),
		kgo.RebalanceTimeout(session),
		kgo.HeartbeatInterval(heartbeat),
		kgo.DisableAutoCommit(),
		// Records and commits of one generation are told of before the next begins.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(shared("partitions_assigned", topic)),
		kgo.OnPartitionsRevoked(shared("partitions_revoked", topic)),
		kgo.OnPartitionsLost(shared("partitions_revoked", topic)),
	)...)
	if err != nil {
		return err
	}
	defer m.CloseAllowingRebalance()
	for ctx.Err() == nil {
		fetches := m.PollFetches(ctx)
		fetches.EachRecord(tellRecord)
		if err := failure(fetches); err != nil {
			return err
		}
		if fetches.NumRecords() > 0 {
			commit(m, topic)
		}
		m.AllowRebalance()
	}
	return nil
}

func shared(name, topic string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, m *kgo.Client, share map[string][]int32) {
		partitions := []map[string]any{}
		for _, partition := range share[topic] {
			partitions = append(partitions, map[string]any{"topic": topic, "partition": partition})
		}
		_, generation := m.GroupMetadata()
		tell(name, map[string]any{"partitions": partitions, "generation": generation})
	}
}

func commit(m *kgo.Client, topic string) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	_, generation := m.GroupMetadata()
	asked, wanted := now(), m.UncommittedOffsets()
	m.CommitOffsetsSync(ctx, wanted, func(
		_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error,
	) {
		offsets := []map[string]any{}
		for partition, offset := range wanted[topic] {
			offsets = append(offsets, map[string]any{
				"topic": topic, "partition": partition, "offset": offset.Offset,
			})
		}
		if err == nil {
			err = refusal(answer)
		}
		event := map[string]any{
			"offsets": offsets, "success": err == nil, "generation": generation, "asked": asked,
		}
		if err != nil {
			event["error"] = err.Error()
		}
		tell("offsets_committed", event)
	})
}

func refusal(answer *kmsg.OffsetCommitResponse) error {
	for _, topic := range answer.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}
