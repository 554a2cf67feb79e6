package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"penstock/clients/lines"
)

// member is a consumer in a group; sarama calls it, and poll takes what came.
type member struct {
	group    sarama.ConsumerGroup
	cancel   context.CancelFunc
	done     chan error
	messages chan *sarama.ConsumerMessage
	lock     sync.Mutex
	session  sarama.ConsumerGroupSession
}

func (c *client) join(command lines.Command) error {
	config := config()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	config.Consumer.Return.Errors = false
	if command.Committed() {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	group, err := sarama.NewConsumerGroup(c.bootstrap, command.Group, config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{
		group:    group,
		cancel:   cancel,
		done:     make(chan error, 1),
		messages: make(chan *sarama.ConsumerMessage, 1000),
	}
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			err = group.Consume(ctx, command.Topics, m)
		}
		m.done <- err
	}()
	c.members[command.Member] = m
	return nil
}

// Setup is called when partitions were assigned.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.hold(session)
	return nil
}

// Cleanup is called when they are to be given back.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.hold(nil)
	return nil
}

// ConsumeClaim runs for each assigned partition.
func (m *member) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.messages <- message
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) hold(session sarama.ConsumerGroupSession) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = session
}

func (m *member) poll() (any, error) {
	records := []lines.Record{}
	for late := time.After(100 * time.Millisecond); late != nil; {
		select {
		case message := <-m.messages:
			records = append(records, line(message))
		case err := <-m.done:
			return nil, fmt.Errorf("the member ended: %w", err)
		case <-late:
			late = nil
		}
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	held := [][]any{}
	if m.session != nil {
		for topic, partitions := range m.session.Claims() {
			for _, partition := range partitions {
				held = append(held, []any{topic, partition})
			}
		}
	}
	return []any{records, held}, nil
}

func (m *member) commit(command lines.Command) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.session == nil {
		return errors.New("nothing is assigned")
	}
	m.session.MarkOffset(command.Topic, command.Partition, command.Offset, "")
	m.session.Commit()
	return nil
}

func (m *member) leave() error {
	m.cancel()
	// A member that was joining again ends with what it was told just now: to stop.
	if err := <-m.done; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return m.group.Close()
}
