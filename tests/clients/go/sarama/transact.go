package main

import (
	"github.com/IBM/sarama"

	"penstock/clients/lines"
)

// transact answers the operations of producers with a transactional id.
func (c *client) transact(command lines.Command) error {
	transactor := c.transactors[command.Transactor]
	switch command.Op {
	case "txn_begin":
		return transactor.BeginTxn()
	case "txn_send":
		return transactor.SendMessages(toSend(command))
	case "txn_end":
		if command.Commits {
			return transactor.CommitTxn()
		}
		return transactor.AbortTxn()
	case "txn_close":
		delete(c.transactors, command.Transactor)
		return transactor.Close()
	}
	made, err := sarama.NewSyncProducer(c.bootstrap, transactional(command.ID))
	if err == nil {
		c.transactors[command.Transactor] = made
	}
	return err
}

// transactional is what sarama wants of a producer in transactions.
func transactional(id string) *sarama.Config {
	config := config()
	config.Producer.Transaction.ID = id
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Net.MaxOpenRequests = 1
	return config
}
