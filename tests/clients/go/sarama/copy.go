package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"penstock/clients/lines"
)

// copier copies the partitions that it is assigned; they share one producer, a transaction each.
type copier struct {
	job      lines.Job
	lock     sync.Mutex
	producer sarama.SyncProducer
}

func copyRecords(ctx context.Context, job lines.Job) error {
	producer, err := sarama.NewSyncProducer([]string{job.Bootstrap}, transactional(job.ID))
	if err != nil {
		return err
	}
	config := config()
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Return.Errors = false
	config.Consumer.Group.Session.Timeout = lines.CopySession
	config.Consumer.Group.Heartbeat.Interval = lines.CopyHeartbeat
	group, err := sarama.NewConsumerGroup([]string{job.Bootstrap}, job.Group, config)
	if err != nil {
		return err
	}
	copying := &copier{job: job, producer: producer}
	for ctx.Err() == nil && err == nil {
		err = group.Consume(ctx, []string{job.Source}, copying)
	}
	return errors.Join(err, group.Close(), producer.Close())
}

// Setup is called when partitions were assigned.
func (c *copier) Setup(sarama.ConsumerGroupSession) error { return nil }

// Cleanup is called when they are to be given back, after every ConsumeClaim has returned.
func (c *copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim runs for each assigned partition.
func (c *copier) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		batch := next(session, claim)
		if len(batch) == 0 {
			return nil
		}
		for {
			done, err := c.copy(session, batch)
			if err != nil {
				return err
			}
			if done {
				break
			}
		}
	}
}

// next waits for a message and takes those that are there with it; none is the end.
func next(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) []*sarama.ConsumerMessage {
	batch := []*sarama.ConsumerMessage{}
	var late <-chan time.Time
	for len(batch) < lines.CopyRecords {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return batch
			}
			batch = append(batch, message)
			late = time.After(time.Millisecond)
		case <-late:
			return batch
		case <-session.Context().Done():
			return nil
		}
	}
	return batch
}

// copy tells whether the batch was committed; it is not when the dice say so.
func (c *copier) copy(
	session sarama.ConsumerGroupSession, batch []*sarama.ConsumerMessage,
) (bool, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err := c.producer.BeginTxn(); err != nil {
		return false, err
	}
	messages := make([]*sarama.ProducerMessage, len(batch))
	for i, message := range batch {
		messages[i] = &sarama.ProducerMessage{
			Topic:     c.job.Target,
			Partition: message.Partition,
			Value:     sarama.ByteEncoder(lines.Copied(message.Value)),
		}
	}
	err := c.producer.SendMessages(messages)
	if err == nil {
		member := sarama.NewConsumerGroupMetadataFromSession(session, c.job.Group, nil)
		last := batch[len(batch)-1]
		err = c.producer.AddMessageToTxnWithGroupMetadata(last, member, nil)
	}
	if err != nil {
		return false, errors.Join(err, c.producer.AbortTxn())
	}
	if c.job.Aborts() {
		return false, c.producer.AbortTxn()
	}
	return true, c.producer.CommitTxn()
}
