// Members of groups: kafkajs calls them, and `poll` takes what came.
'use strict'

const { setTimeout: sleep } = require('node:timers/promises')

exports.groups = (kafka, json) => {
  const members = new Map()

  return {
    async join({ member, group, topics, isolation }) {
      const consumer = kafka.consumer({
        groupId: group,
        heartbeatInterval: 300,
        maxWaitTimeInMs: 100,
        readUncommitted: isolation === 'read_uncommitted',
      })
      const state = { consumer, records: [], assigned: [] }
      consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
        state.assigned = Object.entries(payload.memberAssignment).flatMap(([topic, partitions]) =>
          partitions.map(partition => [topic, partition])
        )
      })
      consumer.on(consumer.events.REBALANCING, () => (state.assigned = []))
      await consumer.connect()
      await consumer.subscribe({ topics, fromBeginning: true })
      await consumer.run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => {
          state.records.push(json(partition, message))
        },
      })
      members.set(member, state)
    },
    async poll({ member }) {
      const state = members.get(member)
      if (state.records.length === 0) await sleep(100)
      return [state.records.splice(0), state.assigned]
    },
    commit: ({ member, topic, partition, offset }) =>
      members.get(member).consumer.commitOffsets([{ topic, partition, offset: String(offset) }]),
    async leave({ member }) {
      await members.get(member).consumer.disconnect()
      members.delete(member)
    },
  }
}
