// Records between kafkajs and the line: bytes are base 64 there.
'use strict'

const text = data => (data === null || data === undefined ? null : data.toString('base64'))

exports.bytes = line => (line === null ? null : Buffer.from(line, 'base64'))

// kafkajs gathers repeated headers under one name.
const headers = gathered =>
  Object.entries(gathered ?? {}).flatMap(([name, values]) =>
    [values].flat().map(value => [name, text(value)])
  )

exports.json = (partition, message) => ({
  key: text(message.key),
  value: text(message.value),
  headers: headers(message.headers),
  timestamp: Number(message.timestamp),
  partition,
  offset: Number(message.offset),
})
