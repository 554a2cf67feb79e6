// The codecs that kafkajs leaves to others: all but gzip.
'use strict'

const { CompressionCodecs, CompressionTypes } = require('kafkajs')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const zstd = require('@bokuweb/zstd-wasm')

const LARGEST = 16 << 20

const codec = (compress, decompress) => () => ({
  compress: async encoder => Buffer.from(compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(decompress(buffer)),
})

exports.useCodecs = async () => {
  await zstd.init()
  CompressionCodecs[CompressionTypes.Snappy] = snappy
  CompressionCodecs[CompressionTypes.LZ4] = codec(lz4.compressFrameSync, lz4.decompressFrameSync)
  CompressionCodecs[CompressionTypes.ZSTD] = codec(
    data => zstd.compress(data, 3),
    data => zstd.decompress(data, { defaultHeapSize: LARGEST })
  )
}
