// Logs in by kafkajs, creates a topic, and copies records through it. The argument is JSON: see
// tests/clients/secured.py. Modules come from the folder that NODE_PATH names.
'use strict'

const fs = require('node:fs')
const { Kafka, logLevel } = require('kafkajs')

const job = JSON.parse(process.argv[2])
const mechanism = job.mechanism.toLowerCase()
const bearer = { mechanism, oauthBearerProvider: async () => ({ value: job.token }) }
const password = { mechanism, username: job.username, password: job.password }
const kafka = new Kafka({
  brokers: [job.bootstrap],
  logLevel: logLevel.NOTHING,
  ssl: { ca: [fs.readFileSync(job.ca)] },
  sasl: mechanism === 'oauthbearer' ? bearer : password,
})

async function main() {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: job.topic, numPartitions: 1 }] })
  await admin.disconnect()
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic: job.topic, messages: job.values.map(value => ({ value })) })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: job.topic })
  await consumer.connect()
  await consumer.subscribe({ topic: job.topic, fromBeginning: true })
  let read = 0
  await new Promise(resolve =>
    consumer.run({
      eachMessage: async ({ message }) => {
        console.log(message.value.toString())
        if (++read === job.values.length) resolve()
      },
    }),
  )
  await consumer.disconnect()
}

main().catch(error => {
  console.error(error.message)
  process.exit(1)
})
