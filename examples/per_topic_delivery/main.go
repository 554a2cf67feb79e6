// Two guarantees in one program: readings that may be lost, payments that may not.
//
// A guarantee belongs to a producer, not to a program, so this one has two of them. Readings are
// sent and forgotten: no answer is awaited, nothing is sent again. Payments wait for all in-sync
// replicas and are sent again when an answer is missing; being idempotent, the producer numbers
// them, so that the broker drops what it has already.
//
//	go run . 127.0.0.1:9092 readings payments 1000
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

const (
	pause    = time.Millisecond
	accounts = 7
)

// readings are sent as quickly as possible and never again.
func readings() *sarama.Config {
	config := sarama.NewConfig()
	config.Producer.RequiredAcks = sarama.NoResponse
	config.Producer.Retry.Max = 0
	config.Producer.Return.Errors = false
	return config
}

// payments are there once, and their order is kept.
func payments() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0 // idempotence wants 0.11 or later
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Retry.Max = 5
	config.Producer.Retry.Backoff = time.Second
	config.Metadata.Retry.Max = 60 // a broker that starts anew is waited for, half a minute long
	config.Metadata.Retry.Backoff = 500 * time.Millisecond
	config.Producer.Idempotent = true
	config.Producer.Return.Successes = true
	config.Net.MaxOpenRequests = 1 // what idempotence wants in sarama
	return config
}

func main() {
	if len(os.Args) != 5 {
		fail(errors.New("usage: per_topic_delivery BOOTSTRAP READINGS-TOPIC PAYMENTS-TOPIC COUNT"))
	}
	bootstrap, loose, strict := os.Args[1:2], os.Args[2], os.Args[3]
	count, err := strconv.Atoi(os.Args[4])
	if err != nil {
		fail(fmt.Errorf("COUNT must be a number: %w", err))
	}
	forgetful, err := sarama.NewAsyncProducer(bootstrap, readings())
	if err != nil {
		fail(err)
	}
	careful, err := sarama.NewSyncProducer(bootstrap, payments())
	if err != nil {
		fail(err)
	}
	acknowledged := 0
	for number := range count {
		forgetful.Input() <- &sarama.ProducerMessage{
			Topic: loose, Value: sarama.StringEncoder(fmt.Sprintf("reading %d", number)),
		}
		if _, _, err := careful.SendMessage(&sarama.ProducerMessage{
			Topic: strict,
			Key:   sarama.StringEncoder(fmt.Sprintf("account %d", number%accounts)),
			Value: sarama.StringEncoder(strconv.Itoa(number)), // cents
			Headers: []sarama.RecordHeader{
				{Key: []byte("id"), Value: fmt.Appendf(nil, "payment %d", number)},
			},
		}); err != nil {
			fail(fmt.Errorf("payment %d: %w", number, err))
		}
		acknowledged++
		time.Sleep(pause)
	}
	if err := errors.Join(forgetful.Close(), careful.Close()); err != nil {
		fail(err)
	}
	fmt.Printf("%d readings sent, %d payments acknowledged\n", count, acknowledged)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "per_topic_delivery:", err)
	os.Exit(1)
}
