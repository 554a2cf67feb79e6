// sarama drives sarama by the line protocol; its only argument is the bootstrap address.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"

	"penstock/clients/lines"
)

type client struct {
	bootstrap   []string
	sarama      sarama.Client
	admin       sarama.ClusterAdmin
	producers   map[string]sarama.SyncProducer
	members     map[int]*member
	transactors map[int]sarama.SyncProducer
}

func main() {
	lines.RunCopy(copyRecords)
	lines.RunMember(loneMember)
	bootstrap := os.Args[1:2]
	shared, err := sarama.NewClient(bootstrap, config())
	if err != nil {
		panic(err)
	}
	admin, err := sarama.NewClusterAdminFromClient(shared)
	if err != nil {
		panic(err)
	}
	c := &client{
		bootstrap,
		shared,
		admin,
		map[string]sarama.SyncProducer{},
		map[int]*member{},
		map[int]sarama.SyncProducer{},
	}
	lines.Serve(c.answer, func(err error) (int16, bool) {
		var several sarama.ProducerErrors
		if errors.As(err, &several) {
			err = several[0]
		}
		var refused sarama.KError
		if errors.As(err, &refused) {
			return int16(refused), true
		}
		return 0, false
	})
}

func config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Return.Errors = true
	return config
}

func (c *client) answer(command lines.Command) (any, error) {
	switch command.Op {
	case "produce":
		return c.produce(command)
	case "fetch":
		return c.fetch(command)
	case "join":
		return nil, c.join(command)
	case "poll":
		return c.members[command.Member].poll()
	case "commit":
		return nil, c.members[command.Member].commit(command)
	case "leave":
		err := c.members[command.Member].leave()
		delete(c.members, command.Member)
		return nil, err
	case "transactor", "txn_begin", "txn_send", "txn_end", "txn_close":
		return nil, c.transact(command)
	}
	return c.administer(command)
}

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func (c *client) producer(command lines.Command) (sarama.SyncProducer, error) {
	how := fmt.Sprint(command.Codec, command.Acks, command.Idempotent, command.Manual())
	if known, ok := c.producers[how]; ok {
		return known, nil
	}
	config := config()
	config.Producer.Return.Successes = true
	config.Producer.Compression = codecs[command.Codec]
	config.Producer.RequiredAcks = sarama.RequiredAcks(command.Acks)
	if command.Idempotent {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	if command.Manual() {
		config.Producer.Partitioner = sarama.NewManualPartitioner
	}
	made, err := sarama.NewSyncProducer(c.bootstrap, config)
	if err == nil {
		c.producers[how] = made
	}
	return made, err
}

func (c *client) produce(command lines.Command) (any, error) {
	producer, err := c.producer(command)
	if err != nil {
		return nil, err
	}
	messages := toSend(command)
	if err := producer.SendMessages(messages); err != nil {
		return nil, err
	}
	placed := make([][2]int64, len(messages))
	for i, message := range messages {
		placed[i] = [2]int64{int64(message.Partition), message.Offset}
	}
	return placed, nil
}

func toSend(command lines.Command) []*sarama.ProducerMessage {
	messages := make([]*sarama.ProducerMessage, len(command.Records))
	for i, record := range command.Records {
		message := &sarama.ProducerMessage{Topic: command.Topic, Timestamp: record.Time()}
		// An encoder of nil bytes would stand for an empty value.
		if record.Key != nil {
			message.Key = sarama.ByteEncoder(record.Key)
		}
		if record.Value != nil {
			message.Value = sarama.ByteEncoder(record.Value)
		}
		for _, header := range record.Headers {
			message.Headers = append(
				message.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
		}
		if record.Partition != nil {
			message.Partition = *record.Partition
		}
		messages[i] = message
	}
	return messages
}

func (c *client) fetch(command lines.Command) (any, error) {
	consumer, err := sarama.NewConsumerFromClient(c.sarama)
	if err != nil {
		return nil, err
	}
	found := make([][]lines.Record, 0, len(command.Reads))
	for _, read := range command.Reads {
		records, err := c.read(consumer, command, read[0], int(read[1]))
		if err != nil {
			return nil, err
		}
		found = append(found, records)
	}
	return found, consumer.Close()
}

func (c *client) read(
	consumer sarama.Consumer, command lines.Command, offset int64, count int,
) ([]lines.Record, error) {
	partition, err := consumer.ConsumePartition(command.Topic, command.Partition, offset)
	if err != nil {
		return nil, err
	}
	defer partition.AsyncClose()
	records := make([]lines.Record, 0, count)
	late := time.After(lines.Wait)
	for len(records) < count {
		select {
		case message := <-partition.Messages():
			records = append(records, line(message))
		case err := <-partition.Errors():
			return nil, err
		case <-late:
			return nil, fmt.Errorf("%d of %d records came", len(records), count)
		}
	}
	return records, nil
}

func line(message *sarama.ConsumerMessage) lines.Record {
	at := message.Timestamp.UnixMilli()
	headers := []lines.Header{}
	for _, header := range message.Headers {
		headers = append(headers, lines.Header{Name: string(header.Key), Value: header.Value})
	}
	return lines.Record{
		Key:       message.Key,
		Value:     message.Value,
		Headers:   headers,
		Timestamp: &at,
		Partition: &message.Partition,
		Offset:    message.Offset,
	}
}
