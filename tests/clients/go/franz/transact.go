package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"penstock/clients/lines"
)

// transact answers the operations of producers with a transactional id.
func (c *client) transact(ctx context.Context, command lines.Command) error {
	transactor := c.transactors[command.Transactor]
	switch command.Op {
	case "txn_begin":
		return transactor.BeginTransaction()
	case "txn_send":
		return transactor.ProduceSync(ctx, toSend(command)...).FirstErr()
	case "txn_end":
		return transactor.EndTransaction(ctx, kgo.TransactionEndTry(command.Commits))
	case "txn_close":
		transactor.Close()
		delete(c.transactors, command.Transactor)
		return nil
	}
	made, err := kgo.NewClient(
		kgo.SeedBrokers(c.bootstrap),
		kgo.TransactionalID(command.ID),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(fetchWait),
	)
	if err != nil {
		return err
	}
	c.transactors[command.Transactor] = made
	_, _, err = made.ProducerID(ctx) // else it would fence its forerunner at its first record
	return err
}
