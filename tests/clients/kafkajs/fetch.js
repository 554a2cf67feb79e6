// Reading without a group. kafkajs has no consumer for that, but its brokers fetch all the same:
// the requests, the answers and the decoding of batches are those of its consumer.
'use strict'

const { json } = require('./record')

const WAIT_MS = 20_000
const BATCH_BYTES = 1 << 20

const createClusterOf = kafka =>
  kafka[
    Object.getOwnPropertySymbols(kafka).find(
      symbol => symbol.description === 'private:Kafka:createCluster'
    )
  ]

async function read(broker, topic, partition, start, count) {
  const records = []
  const deadline = Date.now() + WAIT_MS
  for (let next = start; records.length < count; ) {
    if (Date.now() > deadline) throw new Error(`${records.length} of ${count} records came`)
    const { responses } = await broker.fetch({
      isolationLevel: 0,
      maxWaitTime: 100,
      topics: [{ topic, partitions: [{ partition, fetchOffset: next, maxBytes: BATCH_BYTES }] }],
    })
    const { messages } = responses[0].partitions[0]
    // A batch comes whole, from before the offset that was asked for.
    const fresh = messages.filter(message => Number(message.offset) >= next)
    records.push(...fresh.map(message => json(partition, message)))
    if (fresh.length > 0) next = Number(fresh.at(-1).offset) + 1
  }
  return records.slice(0, count)
}

async function earliest(cluster, topic, partition) {
  const wanted = { topic, fromBeginning: true, partitions: [{ partition }] }
  const [{ partitions }] = await cluster.fetchTopicsOffset([wanted])
  return Number(partitions[0].offset)
}

exports.fetcher = kafka => {
  let cluster = null

  return async ({ topic, partition, reads }) => {
    if (cluster === null) {
      cluster = createClusterOf(kafka)({})
      await cluster.connect()
    }
    await cluster.addTargetTopic(topic)
    const [leader] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]))
    const broker = await cluster.findBroker({ nodeId: leader })
    const found = []
    for (const [offset, count] of reads) {
      const start = offset < 0 ? await earliest(cluster, topic, partition) : offset
      found.push(await read(broker, topic, partition, start, count))
    }
    return found
  }
}
