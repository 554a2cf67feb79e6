// kafkajs by the line protocol that tests/clients/piped.py describes; the only argument is the
// bootstrap address. Modules come from the folder that NODE_PATH names.
'use strict'

const readline = require('node:readline')
const { Kafka, CompressionTypes, ConfigResourceTypes, Partitioners, logLevel } = require('kafkajs')
const { useCodecs } = require('./codecs')
const { fetcher } = require('./fetch')
const { groups } = require('./group')
const { json, bytes } = require('./record')
const { transactors } = require('./transact')

const TOPIC_ALREADY_EXISTS = 36
const [LATEST, EARLIEST] = [-1, -2]

class Refused extends Error {
  constructor(code, text) {
    super(text)
    this.code = code
  }
}

// The broker's code, wherever kafkajs wrapped it.
function codeOf(error) {
  if (error === null || typeof error !== 'object') return undefined
  if (Number.isInteger(error.code)) return error.code
  const inner = [...(error.errors ?? []), ...(error.partitions ?? []), error.error, error.cause]
  return inner.map(codeOf).find(code => code !== undefined)
}

const kafka = new Kafka({
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 8 },
})
// It takes a topic that is not there for one that is not there yet, and asks again.
const admin = kafka.admin({ retry: { initialRetryTime: 50, retries: 3 } })
const producers = new Map()

async function producer(idempotent) {
  if (!producers.has(idempotent)) {
    const made = kafka.producer({
      idempotent,
      maxInFlightRequests: idempotent ? 1 : undefined,
      createPartitioner: Partitioners.DefaultPartitioner,
    })
    await made.connect()
    producers.set(idempotent, made)
  }
  return producers.get(idempotent)
}

const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

function message(record) {
  const headers = {}
  for (const [name, value] of record.headers) {
    headers[name] = [...(headers[name] ?? []), bytes(value)]
  }
  return {
    key: bytes(record.key),
    value: bytes(record.value),
    partition: record.partition ?? undefined,
    timestamp: record.timestamp === null ? undefined : String(record.timestamp),
    headers,
  }
}

async function produce({ topic, records, codec, acks, idempotent }) {
  const sender = await producer(idempotent)
  const send = messages =>
    sender.send({ topic, acks, compression: CODECS[codec], messages: messages.map(message) })
  // An answer tells a base offset per partition: records yet to be routed go alone.
  if (records.some(record => record.partition === null)) {
    const placed = []
    for (const record of records) {
      const [sent] = await send([record])
      placed.push([sent.partition, Number(sent.baseOffset)])
    }
    return placed
  }
  const answers = await send(records)
  const next = new Map()
  for (const { partition, baseOffset } of answers ?? []) next.set(partition, Number(baseOffset))
  return records.map(({ partition }) => {
    if (!next.has(partition)) return [partition, -1]
    next.set(partition, next.get(partition) + 1)
    return [partition, next.get(partition) - 1]
  })
}

async function offset({ topic, partition, at }) {
  const offsets =
    at < 0
      ? await admin.fetchTopicOffsets(topic)
      : await admin.fetchTopicOffsetsByTimestamp(topic, at)
  const found = offsets.find(one => one.partition === partition)
  if (at === EARLIEST) return Number(found.low)
  return Number(at === LATEST ? found.high : found.offset)
}

const entries = configs => Object.entries(configs).map(([name, value]) => ({ name, value }))

const operations = {
  async create_topic({ topic, count, configs }) {
    const made = await admin.createTopics({
      topics: [
        { topic, numPartitions: count, replicationFactor: 1, configEntries: entries(configs) },
      ],
    })
    // The one refusal that kafkajs reports by its result.
    if (!made) throw new Refused(TOPIC_ALREADY_EXISTS, topic)
  },
  delete_topic: ({ topic }) => admin.deleteTopics({ topics: [topic] }),
  topics: () => admin.listTopics(),
  async partitions({ topic }) {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions.map(part => [
      part.partitionId,
      part.leader,
      part.replicas,
      part.isr,
    ])
  },
  create_partitions: ({ topic, count }) =>
    admin.createPartitions({ topicPartitions: [{ topic, count }] }),
  async configs({ topic }) {
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
    })
    const described = resources[0].configEntries
    return Object.fromEntries(described.map(one => [one.configName, one.configValue]))
  },
  replace_configs: ({ topic, configs }) =>
    admin.alterConfigs({
      validateOnly: false,
      resources: [
        { type: ConfigResourceTypes.TOPIC, name: topic, configEntries: entries(configs) },
      ],
    }),
  async delete_records({ topic, partition, offset: before }) {
    // It looks for the leader before it asks for the topic's metadata, so have that ready.
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
  },
  async cluster() {
    const { brokers, controller } = await admin.describeCluster()
    return [brokers.map(broker => broker.nodeId), controller]
  },
  offset,
  produce,
  fetch: fetcher(kafka),
  ...groups(kafka, json),
  ...transactors(kafka, message),
}

async function answer(line) {
  const command = JSON.parse(line)
  try {
    return { ok: (await operations[command.op](command)) ?? null }
  } catch (error) {
    return { error: codeOf(error) ?? -1, text: String(error.stack) }
  }
}

async function main() {
  await useCodecs()
  await admin.connect()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await answer(line)) + '\n')
  }
  process.exit(0)
}

main()
