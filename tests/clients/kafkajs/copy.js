// Copies with kafkajs; see tests/clients/copying/job.py. It commits offsets in the name of the group,
// not of a member; but it joins anew only between two batches, so that it holds what it copies.
'use strict'

const { Kafka, Partitioners, logLevel } = require('kafkajs')

const RECORDS = 20
const [bootstrap, group, id, source, target, abortChance] = process.argv.slice(2)

async function copy(producer, partition, messages) {
  const transaction = await producer.transaction()
  await transaction.send({
    topic: target,
    messages: messages.map(({ value }) => ({ partition, value: `copy of ${value}` })),
  })
  const offset = String(Number(messages.at(-1).offset) + 1)
  const topics = [{ topic: source, partitions: [{ partition, offset }] }]
  await transaction.sendOffsets({ consumerGroupId: group, topics })
  const aborts = Math.random() < Number(abortChance)
  await (aborts ? transaction.abort() : transaction.commit())
  return !aborts
}

async function main() {
  const kafka = new Kafka({
    brokers: [bootstrap],
    logLevel: logLevel.ERROR,
    retry: { initialRetryTime: 20, retries: 10 },
  })
  const producer = kafka.producer({
    transactionalId: id,
    maxInFlightRequests: 1,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  const consumer = kafka.consumer({
    groupId: group,
    sessionTimeout: 3000,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 100,
    readUncommitted: false,
  })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) process.exit(1)
  })
  process.on('SIGTERM', async () => {
    await consumer.disconnect()
    await producer.disconnect()
    process.exit(0)
  })
  await producer.connect()
  await consumer.connect()
  await consumer.subscribe({ topics: [source], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, isRunning, isStale }) => {
      for (let at = 0; at < batch.messages.length && isRunning() && !isStale(); ) {
        const some = batch.messages.slice(at, at + RECORDS)
        if (await copy(producer, batch.partition, some)) {
          resolveOffset(some.at(-1).offset)
          at += some.length
        }
      }
    },
  })
}

main()
