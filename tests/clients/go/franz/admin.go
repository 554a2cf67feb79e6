package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"penstock/clients/lines"
)

func (c *client) administer(ctx context.Context, command lines.Command) (any, error) {
	topic := command.Topic
	switch command.Op {
	case "create_topic":
		configs := map[string]*string{}
		for name, value := range command.Configs {
			configs[name] = &value
		}
		_, err := c.admin.CreateTopic(ctx, command.Count, 1, configs, topic)
		return nil, err
	case "delete_topic":
		_, err := c.admin.DeleteTopic(ctx, topic)
		return nil, err
	case "topics":
		topics, err := c.admin.ListTopics(ctx)
		return topics.Names(), err
	case "partitions":
		return c.partitions(ctx, topic)
	case "create_partitions":
		answers, err := c.admin.UpdatePartitions(ctx, int(command.Count), topic)
		if err != nil {
			return nil, err
		}
		return nil, answers[topic].Err
	case "configs":
		described, err := c.admin.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return nil, err
		}
		resource, err := described.On(topic, nil)
		configs := map[string]string{}
		for _, config := range resource.Configs {
			configs[config.Key] = config.MaybeValue()
		}
		return configs, err
	case "replace_configs", "alter_configs":
		return nil, c.alter(ctx, command)
	case "delete_records":
		var before kadm.Offsets
		before.AddOffset(topic, command.Partition, command.Offset, -1)
		answers, err := c.admin.DeleteRecords(ctx, before)
		if err != nil {
			return nil, err
		}
		return nil, answers.Error()
	case "cluster":
		metadata, err := c.admin.BrokerMetadata(ctx)
		return []any{metadata.Brokers.NodeIDs(), metadata.Controller}, err
	case "offset":
		return c.offset(ctx, command)
	}
	return nil, fmt.Errorf("no operation %q", command.Op)
}

func (c *client) partitions(ctx context.Context, topic string) (any, error) {
	topics, err := c.admin.ListTopics(ctx, topic)
	if err != nil {
		return nil, err
	}
	found := [][]any{}
	for _, part := range topics[topic].Partitions.Sorted() {
		found = append(found, []any{part.Partition, part.Leader, part.Replicas, part.ISR})
	}
	return found, topics[topic].Err
}

func (c *client) alter(ctx context.Context, command lines.Command) error {
	changes := []kadm.AlterConfig{}
	for name, value := range command.Configs {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	for _, name := range command.Delete {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	change := c.admin.AlterTopicConfigs
	if command.Op == "replace_configs" {
		change = c.admin.AlterTopicConfigsState
	}
	answers, err := change(ctx, changes, command.Topic)
	if err != nil {
		return err
	}
	answer, err := answers.On(command.Topic, nil)
	if err != nil {
		return err
	}
	return answer.Err
}

func (c *client) offset(ctx context.Context, command lines.Command) (any, error) {
	var listed kadm.ListedOffsets
	var err error
	switch command.At {
	case lines.Latest:
		listed, err = c.admin.ListEndOffsets(ctx, command.Topic)
	case lines.Earliest:
		listed, err = c.admin.ListStartOffsets(ctx, command.Topic)
	default:
		listed, err = c.admin.ListOffsetsAfterMilli(ctx, command.At, command.Topic)
	}
	if err != nil {
		return nil, err
	}
	found, _ := listed.Lookup(command.Topic, command.Partition)
	return found.Offset, found.Err
}
