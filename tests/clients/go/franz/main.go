// franz drives franz-go by the line protocol; its only argument is the bootstrap address.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"penstock/clients/lines"
)

type client struct {
	bootstrap   string
	admin       *kadm.Client
	producers   map[string]*kgo.Client
	members     map[int]*member
	transactors map[int]*kgo.Client
}

func main() {
	lines.RunCopy(copyRecords)
	lines.RunMember(loneMember)
	bare, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.MetadataMinAge(fetchWait))
	if err != nil {
		panic(err)
	}
	c := &client{
		os.Args[1],
		kadm.NewClient(bare),
		map[string]*kgo.Client{},
		map[int]*member{},
		map[int]*kgo.Client{},
	}
	lines.Serve(c.answer, func(err error) (int16, bool) {
		var refused *kerr.Error
		if errors.As(err, &refused) {
			return refused.Code, true
		}
		return 0, false
	})
}

func (c *client) answer(command lines.Command) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lines.Wait)
	defer cancel()
	switch command.Op {
	case "produce":
		return c.produce(ctx, command)
	case "fetch":
		return c.fetch(ctx, command)
	case "join":
		return nil, c.join(command)
	case "poll":
		return c.members[command.Member].poll()
	case "commit":
		return nil, c.members[command.Member].commit(ctx, command)
	case "leave":
		c.members[command.Member].Close()
		delete(c.members, command.Member)
		return nil, nil
	case "transactor", "txn_begin", "txn_send", "txn_end", "txn_close":
		return nil, c.transact(ctx, command)
	}
	return c.administer(ctx, command)
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[int16]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}

func (c *client) producer(command lines.Command) (*kgo.Client, error) {
	how := fmt.Sprint(command.Codec, command.Acks, command.Idempotent, command.Manual())
	if known, ok := c.producers[how]; ok {
		return known, nil
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(c.bootstrap),
		kgo.ProducerBatchCompression(codecs[command.Codec]),
		kgo.RequiredAcks(acks[command.Acks]),
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(fetchWait), // topics are new here
	}
	if !command.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if command.Manual() {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	made, err := kgo.NewClient(options...)
	if err == nil {
		c.producers[how] = made
	}
	return made, err
}

func (c *client) produce(ctx context.Context, command lines.Command) (any, error) {
	producer, err := c.producer(command)
	if err != nil {
		return nil, err
	}
	records := toSend(command)
	if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, err
	}
	placed := make([][2]int64, len(records))
	for i, record := range records {
		placed[i] = [2]int64{int64(record.Partition), record.Offset}
	}
	return placed, nil
}

func toSend(command lines.Command) []*kgo.Record {
	records := make([]*kgo.Record, len(command.Records))
	for i, record := range command.Records {
		records[i] = &kgo.Record{
			Topic:     command.Topic,
			Key:       record.Key,
			Value:     record.Value,
			Timestamp: record.Time(),
		}
		for _, header := range record.Headers {
			records[i].Headers = append(
				records[i].Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		if record.Partition != nil {
			records[i].Partition = *record.Partition
		}
	}
	return records
}

var resets = map[string]kgo.Offset{
	"earliest": kgo.NewOffset().AtStart(),
	"latest":   kgo.NewOffset().AtEnd(),
	"none":     kgo.NoResetOffset(),
}

func (c *client) fetch(ctx context.Context, command lines.Command) (any, error) {
	start := kgo.NewOffset().AtStart()
	if first := command.Reads[0][0]; first >= 0 {
		start = kgo.NewOffset().At(first)
	}
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(c.bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
			command.Topic: {command.Partition: start},
		}),
		kgo.ConsumeResetOffset(resets[command.Reset]),
		kgo.FetchMaxWait(fetchWait),
	)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	found := make([][]lines.Record, 0, len(command.Reads))
	for i, read := range command.Reads {
		if i > 0 {
			consumer.SetOffsets(map[string]map[int32]kgo.EpochOffset{
				command.Topic: {command.Partition: {Epoch: -1, Offset: read[0]}},
			})
		}
		records := make([]lines.Record, 0, read[1])
		for int64(len(records)) < read[1] {
			fetches := consumer.PollRecords(ctx, int(read[1])-len(records))
			if err := fetches.Err(); err != nil {
				return nil, err
			}
			fetches.EachRecord(func(r *kgo.Record) { records = append(records, line(r)) })
		}
		found = append(found, records)
	}
	return found, nil
}

func line(record *kgo.Record) lines.Record {
	at := record.Timestamp.UnixMilli()
	headers := []lines.Header{}
	for _, header := range record.Headers {
		headers = append(headers, lines.Header{Name: header.Key, Value: header.Value})
	}
	return lines.Record{
		Key:       record.Key,
		Value:     record.Value,
		Headers:   headers,
		Timestamp: &at,
		Partition: &record.Partition,
		Offset:    record.Offset,
	}
}
