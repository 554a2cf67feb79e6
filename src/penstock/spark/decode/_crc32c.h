/* CRC-32C (Castagnoli), by the processor's own instruction where it has one.

   The `crc32c` package does this for the rest of Penstock; here a call from C per batch is what counts, since
   batches may be as small as one record.  */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint32_t crc32c_table[8][256];

static uint32_t
crc32c_by_table(const uint8_t *data, size_t size)
{
    uint32_t crc = ~(uint32_t)0;
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16
                              | (uint32_t)data[3] << 24);
        crc = crc32c_table[7][low & 0xFF] ^ crc32c_table[6][low >> 8 & 0xFF]
              ^ crc32c_table[5][low >> 16 & 0xFF] ^ crc32c_table[4][low >> 24]
              ^ crc32c_table[3][data[4]] ^ crc32c_table[2][data[5]] ^ crc32c_table[1][data[6]]
              ^ crc32c_table[0][data[7]];
    }
    while (size-- > 0)
        crc = crc32c_table[0][(crc ^ *data++) & 0xFF] ^ crc >> 8;
    return ~crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t
crc32c_by_instruction(const uint8_t *data, size_t size)
{
    uint64_t crc = ~(uint32_t)0, word;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    while (size-- > 0)
        crc = _mm_crc32_u8((uint32_t)crc, *data++);
    return ~(uint32_t)crc;
}

#define CRC32C_HAS_INSTRUCTION __builtin_cpu_supports("sse4.2")
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

static uint32_t
crc32c_by_instruction(const uint8_t *data, size_t size)
{
    uint32_t crc = ~(uint32_t)0;
    uint64_t word;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        crc = __crc32cd(crc, word);
    }
    while (size-- > 0)
        crc = __crc32cb(crc, *data++);
    return ~crc;
}

#define CRC32C_HAS_INSTRUCTION 1
#else
#define crc32c_by_instruction crc32c_by_table
#define CRC32C_HAS_INSTRUCTION 0
#endif

static uint32_t (*crc32c_chosen)(const uint8_t *, size_t) = crc32c_by_table;

static void
crc32c_prepare(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
        crc32c_table[0][byte] = crc;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = crc32c_table[slice - 1][byte];
            crc32c_table[slice][byte] = crc32c_table[0][crc & 0xFF] ^ crc >> 8;
        }
    if (CRC32C_HAS_INSTRUCTION)
        crc32c_chosen = crc32c_by_instruction;
}

static inline uint32_t
crc32c(const uint8_t *data, int64_t size)
{
    return crc32c_chosen(data, (size_t)size);
}
