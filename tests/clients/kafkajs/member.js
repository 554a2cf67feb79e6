// One member of a group with kafkajs; see tests/clients/lone_member.py.
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, group, topic, json] = process.argv.slice(2)
const {
  'session.timeout.ms': sessionTimeout,
  'heartbeat.interval.ms': heartbeatInterval,
  ...unknown
} = JSON.parse(json)
if (Object.keys(unknown).length > 0) throw new Error(`no settings: ${Object.keys(unknown)}`)

let held = -1
function tell(count) {
  if (count === held) return
  held = count
  console.log(count)
}

async function main() {
  const kafka = new Kafka({
    brokers: [bootstrap],
    logLevel: logLevel.ERROR,
    retry: { initialRetryTime: 20, retries: 10 },
  })
  const consumer = kafka.consumer({
    groupId: group,
    sessionTimeout,
    heartbeatInterval,
    maxWaitTimeInMs: 100,
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) =>
    tell(Object.values(payload.memberAssignment).flat().length)
  )
  consumer.on(consumer.events.REBALANCING, () => tell(0))
  await consumer.connect()
  await consumer.subscribe({ topics: [topic.startsWith('^') ? new RegExp(topic) : topic] })
  await consumer.run({ eachMessage: async () => {} })
}

main()
