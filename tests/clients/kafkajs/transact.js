// Producers with a transactional id. kafkajs takes the id when a transaction begins, not before.
'use strict'

const { Partitioners } = require('kafkajs')

exports.transactors = (kafka, message) => {
  const known = new Map()

  return {
    async transactor({ transactor, id }) {
      const producer = kafka.producer({
        transactionalId: id,
        maxInFlightRequests: 1,
        createPartitioner: Partitioners.DefaultPartitioner,
      })
      await producer.connect()
      known.set(transactor, { producer, open: null })
    },
    async txn_begin({ transactor }) {
      const state = known.get(transactor)
      state.open = await state.producer.transaction()
    },
    async txn_send({ transactor, topic, records }) {
      await known.get(transactor).open.send({ topic, messages: records.map(message) })
    },
    async txn_end({ transactor, commits }) {
      const { open } = known.get(transactor)
      await (commits ? open.commit() : open.abort())
    },
    async txn_close({ transactor }) {
      await known.get(transactor).producer.disconnect()
      known.delete(transactor)
    },
  }
}
