package main

import (
	"context"

	"github.com/IBM/sarama"

	"penstock/clients/lines"
)

// lone is a member that takes what comes and tells how many partitions it holds.
type lone struct{ told *lines.Held }

func loneMember(given lines.Member, told *lines.Held) error {
	config := config()
	config.Consumer.Return.Errors = false
	config.Consumer.Group.Session.Timeout = given.Settings.Session.Duration()
	config.Consumer.Group.Heartbeat.Interval = given.Settings.Heartbeat.Duration()
	config.Consumer.Group.InstanceId = given.Settings.Instance
	if given.Settings.Refresh != 0 {
		config.Metadata.RefreshFrequency = given.Settings.Refresh.Duration()
	}
	group, err := sarama.NewConsumerGroup([]string{given.Bootstrap}, given.Group, config)
	for err == nil {
		err = group.Consume(context.Background(), []string{given.Topic}, lone{told})
	}
	return err
}

// Setup is called when partitions were assigned.
func (l lone) Setup(session sarama.ConsumerGroupSession) error {
	count := 0
	for _, partitions := range session.Claims() {
		count += len(partitions)
	}
	l.told.Tell(count)
	return nil
}

// Cleanup is called when they are to be given back.
func (l lone) Cleanup(sarama.ConsumerGroupSession) error {
	l.told.Tell(0)
	return nil
}

// ConsumeClaim runs for each assigned partition, until the session ends.
func (l lone) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for range claim.Messages() {
	}
	return nil
}
