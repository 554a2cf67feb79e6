package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"penstock/clients/lines"
)

// loneMember holds partitions until it is killed, and tells of each change.
func loneMember(given lines.Member, told *lines.Held) error {
	m := &member{held: map[place]bool{}, changed: told.Tell}
	options := append(m.callbacks(),
		kgo.SeedBrokers(given.Bootstrap),
		kgo.ConsumerGroup(given.Group),
		kgo.ConsumeTopics(given.Topic),
		kgo.SessionTimeout(given.Settings.Session.Duration()),
		kgo.HeartbeatInterval(given.Settings.Heartbeat.Duration()),
		kgo.FetchMaxWait(fetchWait),
		kgo.MetadataMinAge(fetchWait),
	)
	if strings.HasPrefix(given.Topic, "^") {
		options = append(options, kgo.ConsumeRegex())
	}
	if given.Settings.Instance != "" {
		options = append(options, kgo.InstanceID(given.Settings.Instance))
	}
	if given.Settings.Refresh != 0 {
		options = append(options, kgo.MetadataMaxAge(given.Settings.Refresh.Duration()))
	}
	consumer, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	for {
		err := consumer.PollFetches(context.Background()).Err()
		if errors.Is(err, kgo.ErrClientClosed) {
			return err
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err) // it joins again by itself
		}
	}
}
