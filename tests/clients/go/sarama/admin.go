package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/IBM/sarama"

	"penstock/clients/lines"
)

func (c *client) administer(command lines.Command) (any, error) {
	topic := command.Topic
	switch command.Op {
	case "create_topic":
		return nil, c.admin.CreateTopic(topic, &sarama.TopicDetail{
			NumPartitions:     command.Count,
			ReplicationFactor: 1,
			ConfigEntries:     pointers(command.Configs),
		}, false)
	case "delete_topic":
		return nil, c.admin.DeleteTopic(topic)
	case "topics":
		topics, err := c.admin.ListTopics()
		return slices.Collect(maps.Keys(topics)), err
	case "partitions":
		described, err := c.admin.DescribeTopics([]string{topic})
		if err != nil {
			return nil, err
		}
		found := [][]any{}
		for _, part := range described[0].Partitions {
			found = append(found, []any{part.ID, part.Leader, part.Replicas, part.Isr})
		}
		return found, nil
	case "create_partitions":
		return nil, c.admin.CreatePartitions(topic, command.Count, nil, false)
	case "configs":
		entries, err := c.admin.DescribeConfig(
			sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
		configs := map[string]string{}
		for _, entry := range entries {
			configs[entry.Name] = entry.Value
		}
		return configs, err
	case "replace_configs":
		configs := pointers(command.Configs)
		return nil, c.admin.AlterConfig(sarama.TopicResource, topic, configs, false)
	case "alter_configs":
		changes := map[string]sarama.IncrementalAlterConfigsEntry{}
		for name, value := range pointers(command.Configs) {
			changes[name] = sarama.IncrementalAlterConfigsEntry{
				Operation: sarama.IncrementalAlterConfigsOperationSet, Value: value,
			}
		}
		for _, name := range command.Delete {
			changes[name] = sarama.IncrementalAlterConfigsEntry{
				Operation: sarama.IncrementalAlterConfigsOperationDelete,
			}
		}
		return nil, c.admin.IncrementalAlterConfig(sarama.TopicResource, topic, changes, false)
	case "delete_records":
		return nil, c.admin.DeleteRecords(topic, map[int32]int64{command.Partition: command.Offset})
	case "cluster":
		brokers, controller, err := c.admin.DescribeCluster()
		ids := []int32{}
		for _, broker := range brokers {
			ids = append(ids, broker.ID())
		}
		return []any{ids, controller}, err
	case "offset":
		return c.sarama.GetOffset(topic, command.Partition, command.At)
	}
	return nil, fmt.Errorf("no operation %q", command.Op)
}

func pointers(configs map[string]string) map[string]*string {
	pointers := map[string]*string{}
	for name, value := range configs {
		pointers[name] = &value
	}
	return pointers
}
