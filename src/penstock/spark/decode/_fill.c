/* Records into Arrow's buffers, in C: see native.py, which makes the buffers. `fill` takes the payload of one
   batch; `fill_plain` takes fetched bytes and reads plain batches itself, header and CRC included, until one
   comes that Python must look at.

   Every byte is read behind a bounds check, and positions are 64 bits wide: a length (at most 31 bits)
   may carry one past the end, where the next read ends the walk. Nothing is written that the buffers
   have no room for; a record that does not fit is left for the next call.  */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include "_crc32c.h"

/* Below this size handing over the GIL costs more than the work. */
#define LARGE_BYTES (1 << 15)

typedef enum {
    FINE,
    FULL,
    CUT,
    VARINT,
    SIZE,
    HEADER_COUNT,
    HEADER_KEY,
    FIELDS,
    BYTES_LEFT,
    OFFSET,
} Verdict;

/* The buffers, in the order of the tuple that Python passes. */
enum {
    OFFSETS, TIMESTAMPS, KINDS,
    KEY_ENDS, KEY_VALID, KEY_DATA,
    VALUE_ENDS, VALUE_VALID, VALUE_DATA,
    HEADER_ENDS, HEADER_VALID,
    NAME_ENDS, NAME_DATA,
    CONTENT_ENDS, CONTENT_VALID, CONTENT_DATA,
    COUNTS,
    BUFFERS,
};

/* What COUNTS counts; kept between calls. */
enum {
    ROWS, KEY_BYTES, VALUE_BYTES, HEADERS, NAME_BYTES, CONTENT_BYTES,
    NULL_KEYS, NULL_VALUES, NULL_CONTENTS, BARE_ROWS,
    COUNTERS,
};

typedef struct {
    const uint8_t *data;
    int64_t size, at;
} Reader;

typedef struct {
    int64_t base_offset, base_timestamp;
    int append_time;
    int64_t first, end;         /* offsets wanted: first <= offset < end */
    int64_t oldest, newest;     /* times wanted, both included */
    int with_headers;
} Batch;

typedef struct {
    Py_buffer buffers[BUFFERS];
    int64_t rows, headers;      /* capacities */
    int64_t *counts;
} Chunk;

typedef struct {
    const uint8_t *bytes;
    int64_t size;               /* negative: null */
} Field;

static inline int64_t
unzigzag(uint64_t raw)
{
    return (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
}

static Verdict
read_long(Reader *reader, int bits, int64_t *value)
{
    uint64_t raw = 0;
    for (int shift = 0; shift < bits; shift += 7) {
        if (reader->at >= reader->size)
            return CUT;
        uint64_t byte = reader->data[reader->at++];
        raw |= (byte & 0x7F) << shift;
        if (byte < 0x80) {
            if (shift + 7 > bits && byte >> (bits - shift))
                return VARINT;
            *value = unzigzag(raw);
            return FINE;
        }
    }
    return VARINT;
}

static inline Verdict
read_number(Reader *reader, int bits, int64_t *value)
{
    /* Nearly all numbers have one byte or two. */
    if (reader->size - reader->at >= 2) {
        uint64_t first = reader->data[reader->at], second = reader->data[reader->at + 1];
        if (first < 0x80) {
            reader->at += 1;
            *value = unzigzag(first);
            return FINE;
        }
        if (second < 0x80) {
            reader->at += 2;
            *value = unzigzag((first & 0x7F) | second << 7);
            return FINE;
        }
    }
    return read_long(reader, bits, value);
}

#define TRY(call)                   \
    do {                            \
        Verdict tried = (call);     \
        if (tried != FINE)          \
            return tried;           \
    } while (0)

static inline Verdict
read_field(Reader *reader, int64_t end, Field *field)
{
    TRY(read_number(reader, 32, &field->size));
    field->bytes = reader->data + reader->at;
    if (field->size > 0) {
        if (field->size > end - reader->at)
            return FIELDS;
        reader->at += field->size;
    }
    return FINE;
}

static inline void
clear_bit(uint8_t *bits, int64_t index)
{
    bits[index >> 3] &= (uint8_t)~(1u << (index & 7));
}

/* Append a field at `used` of its column; the caller has made sure that it fits. */
static inline int64_t
put(Chunk *chunk, int column_ends, int column_data, int64_t row, int64_t used, const Field *field)
{
    if (field->size > 0) {
        memcpy((uint8_t *)chunk->buffers[column_data].buf + used, field->bytes, (size_t)field->size);
        used += field->size;
    }
    ((int32_t *)chunk->buffers[column_ends].buf)[row + 1] = (int32_t)used;
    return used;
}

static inline int
fits(const Chunk *chunk, int column_data, int64_t used, const Field *field)
{
    return field->size <= 0 || field->size <= (int64_t)chunk->buffers[column_data].len - used;
}

/* Headers go behind those of the rows before; they count only once their record is taken. */
static Verdict
read_headers(Reader *reader, int64_t end, Chunk *chunk, int wanted, int64_t *headers,
             int64_t *names, int64_t *contents, int64_t *nulls)
{
    int64_t count;
    TRY(read_number(reader, 32, &count));
    if (count < 0)
        return HEADER_COUNT;
    for (; count > 0; count--) {
        Field name, content;
        TRY(read_field(reader, end, &name));
        if (name.size < 0)
            return HEADER_KEY;
        TRY(read_field(reader, end, &content));
        if (!wanted)
            continue;
        if (*headers >= chunk->headers || !fits(chunk, NAME_DATA, *names, &name)
            || !fits(chunk, CONTENT_DATA, *contents, &content))
            return FULL;
        *names = put(chunk, NAME_ENDS, NAME_DATA, *headers, *names, &name);
        *contents = put(chunk, CONTENT_ENDS, CONTENT_DATA, *headers, *contents, &content);
        if (content.size < 0) {
            clear_bit(chunk->buffers[CONTENT_VALID].buf, *headers);
            ++*nulls;
        }
        else {
            uint8_t *bits = chunk->buffers[CONTENT_VALID].buf;
            bits[*headers >> 3] |= (uint8_t)(1u << (*headers & 7));
        }
        ++*headers;
    }
    return FINE;
}

static int64_t
as_micros(int64_t millis)
{
    int64_t micros;
    if (__builtin_mul_overflow(millis, (int64_t)1000, &micros))
        return millis < 0 ? INT64_MIN : INT64_MAX;
    return micros;
}

static Verdict
take_record(Reader *reader, const Batch *batch, Chunk *chunk)
{
    int64_t size, number, offset, timestamp, *counts = chunk->counts, row = counts[ROWS];
    TRY(read_number(reader, 32, &size));
    int64_t end = reader->at + size;
    if (size < 0 || end > reader->size)
        return SIZE;
    reader->at++; /* attributes, none of them in use */
    TRY(read_number(reader, 64, &number));
    timestamp = batch->base_timestamp;
    if (!batch->append_time && __builtin_add_overflow(timestamp, number, &timestamp))
        timestamp = number < 0 ? INT64_MIN : INT64_MAX;
    TRY(read_number(reader, 32, &number));
    if (__builtin_add_overflow(batch->base_offset, number, &offset))
        return OFFSET;
    Field key, value;
    TRY(read_field(reader, end, &key));
    TRY(read_field(reader, end, &value));
    int wanted = offset >= batch->first && offset < batch->end
                 && timestamp >= batch->oldest && timestamp <= batch->newest;
    int64_t headers = counts[HEADERS], names = counts[NAME_BYTES];
    int64_t contents = counts[CONTENT_BYTES], nulls = counts[NULL_CONTENTS];
    TRY(read_headers(reader, end, chunk, wanted && batch->with_headers, &headers, &names, &contents,
                     &nulls));
    /* Lengths that run past the record show here: the position only ever moves forward. */
    if (reader->at != end)
        return FIELDS;
    if (!wanted)
        return FINE;
    if (row >= chunk->rows || !fits(chunk, KEY_DATA, counts[KEY_BYTES], &key)
        || !fits(chunk, VALUE_DATA, counts[VALUE_BYTES], &value))
        return FULL;
    ((int64_t *)chunk->buffers[OFFSETS].buf)[row] = offset;
    ((int64_t *)chunk->buffers[TIMESTAMPS].buf)[row] = as_micros(timestamp);
    ((int32_t *)chunk->buffers[KINDS].buf)[row] = batch->append_time;
    counts[KEY_BYTES] = put(chunk, KEY_ENDS, KEY_DATA, row, counts[KEY_BYTES], &key);
    counts[VALUE_BYTES] = put(chunk, VALUE_ENDS, VALUE_DATA, row, counts[VALUE_BYTES], &value);
    if (key.size < 0) {
        clear_bit(chunk->buffers[KEY_VALID].buf, row);
        counts[NULL_KEYS]++;
    }
    if (value.size < 0) {
        clear_bit(chunk->buffers[VALUE_VALID].buf, row);
        counts[NULL_VALUES]++;
    }
    if (batch->with_headers) {
        ((int32_t *)chunk->buffers[HEADER_ENDS].buf)[row + 1] = (int32_t)headers;
        if (headers == counts[HEADERS]) {
            clear_bit(chunk->buffers[HEADER_VALID].buf, row);
            counts[BARE_ROWS]++;
        }
        counts[HEADERS] = headers;
        counts[NAME_BYTES] = names;
        counts[CONTENT_BYTES] = contents;
        counts[NULL_CONTENTS] = nulls;
    }
    counts[ROWS]++;
    return FINE;
}

/* Takes records until none is left or one does not fit; `reader` stands behind the last one taken. */
static Verdict
take_records(Reader *reader, const Batch *batch, Chunk *chunk, int64_t *left)
{
    for (; *left > 0; --*left) {
        int64_t start = reader->at;
        Verdict verdict = take_record(reader, batch, chunk);
        if (verdict != FINE) {
            if (verdict == FULL)
                reader->at = start;
            return verdict;
        }
    }
    return reader->at == reader->size ? FINE : BYTES_LEFT;
}

static const char *const WORDS[] = {
    [CUT] = "the last record is cut",
    [VARINT] = "a varint is too long",
    [SIZE] = "a record is longer than the batch",
    [HEADER_COUNT] = "a record's header count is negative",
    [HEADER_KEY] = "a header key is null",
    [FIELDS] = "a record's fields do not fill it",
    [BYTES_LEFT] = "bytes follow the last record",
    [OFFSET] = "a record's offset passes 64 bits",
};

static void
refuse(PyObject *module, Verdict verdict, const Batch *batch)
{
    PyErr_Format(*(PyObject **)PyModule_GetState(module), "batch at offset %lld: %s",
                 (long long)batch->base_offset, WORDS[verdict]);
}

/* Whether the buffers hold as many rows and headers as is claimed. */
static int
check_room(Chunk *chunk)
{
    const Py_buffer *of = chunk->buffers;
    int64_t rows = chunk->rows, headers = chunk->headers;
    if (rows < 0 || headers < 0 || rows > INT32_MAX || headers > INT32_MAX)
        return 0;
    int64_t bits = (rows + 7) / 8, header_bits = (headers + 7) / 8;
    int data[] = {KEY_DATA, VALUE_DATA, NAME_DATA, CONTENT_DATA};
    for (int each = 0; each < 4; each++)
        if (of[data[each]].len > INT32_MAX)
            return 0;
    return of[OFFSETS].len >= 8 * rows && of[TIMESTAMPS].len >= 8 * rows && of[KINDS].len >= 4 * rows
           && of[KEY_ENDS].len >= 4 * (rows + 1) && of[VALUE_ENDS].len >= 4 * (rows + 1)
           && of[HEADER_ENDS].len >= 4 * (rows + 1) && of[KEY_VALID].len >= bits
           && of[VALUE_VALID].len >= bits && of[HEADER_VALID].len >= bits
           && of[NAME_ENDS].len >= 4 * (headers + 1) && of[CONTENT_ENDS].len >= 4 * (headers + 1)
           && of[CONTENT_VALID].len >= header_bits && of[COUNTS].len >= 8 * COUNTERS;
}

/* Counters are kept by Python between calls: believe them only within their buffers. */
static int
check_counts(const Chunk *chunk)
{
    const int64_t *counts = chunk->counts;
    for (int each = 0; each < COUNTERS; each++)
        if (counts[each] < 0)
            return 0;
    return counts[ROWS] <= chunk->rows && counts[HEADERS] <= chunk->headers
           && counts[KEY_BYTES] <= chunk->buffers[KEY_DATA].len
           && counts[VALUE_BYTES] <= chunk->buffers[VALUE_DATA].len
           && counts[NAME_BYTES] <= chunk->buffers[NAME_DATA].len
           && counts[CONTENT_BYTES] <= chunk->buffers[CONTENT_DATA].len;
}

/* A chunk's buffers held for the time of one call. */
static int
hold(Chunk *chunk, PyObject *buffers)
{
    int held = 0;
    if (PyTuple_Size(buffers) != BUFFERS) {
        PyErr_SetString(PyExc_ValueError, "not the buffers of a chunk");
        return 0;
    }
    for (; held < BUFFERS; held++)
        if (PyObject_GetBuffer(PyTuple_GetItem(buffers, held), &chunk->buffers[held],
                               PyBUF_WRITABLE) < 0)
            goto failed;
    chunk->counts = chunk->buffers[COUNTS].buf;
    if (check_room(chunk) && check_counts(chunk))
        return 1;
    PyErr_SetString(PyExc_ValueError, "the buffers are too small for rows and headers");
failed:
    while (held-- > 0)
        PyBuffer_Release(&chunk->buffers[held]);
    return 0;
}

static void
release(Chunk *chunk)
{
    for (int each = 0; each < BUFFERS; each++)
        PyBuffer_Release(&chunk->buffers[each]);
}

static PyObject *
fill(PyObject *module, PyObject *args)
{
    Py_buffer payload;
    PyObject *buffers, *result = NULL;
    long long at, left, rows, headers;
    long long base_offset, base_timestamp, first, end, oldest, newest;
    Batch batch;
    if (!PyArg_ParseTuple(args, "y*LL(LLp)(LLLL)p(LL)O!:fill", &payload, &at, &left, &base_offset,
                          &base_timestamp, &batch.append_time, &first, &end, &oldest, &newest,
                          &batch.with_headers, &rows, &headers, &PyTuple_Type, &buffers))
        return NULL;
    batch.base_offset = base_offset;
    batch.base_timestamp = base_timestamp;
    batch.first = first, batch.end = end, batch.oldest = oldest, batch.newest = newest;
    Chunk chunk = {.rows = rows, .headers = headers};
    if (at < 0 || at > payload.len)
        PyErr_SetString(PyExc_ValueError, "a place outside the payload");
    else if (hold(&chunk, buffers)) {
        Reader reader = {.data = payload.buf, .size = payload.len, .at = at};
        int64_t remaining = left;
        Verdict verdict;
        if (reader.size - reader.at < LARGE_BYTES)
            verdict = take_records(&reader, &batch, &chunk, &remaining);
        else {
            Py_BEGIN_ALLOW_THREADS
            verdict = take_records(&reader, &batch, &chunk, &remaining);
            Py_END_ALLOW_THREADS
        }
        release(&chunk);
        if (verdict == FINE || verdict == FULL)
            result = Py_BuildValue("LL", (long long)reader.at, (long long)remaining);
        else
            refuse(module, verdict, &batch);
    }
    PyBuffer_Release(&payload);
    return result;
}

/* Fetched bytes: where in them the next batch lies, and where in that batch the next record if some were
   taken already; `left` is -1 before the first. */
typedef struct {
    const uint8_t *data;
    int64_t size, at, inside, left;
    int check_crcs;
} Fetched;

typedef enum { ALL_READ, CHUNK_FULL, FOR_PYTHON, REFUSED } Pause;

enum {
    HEADER_BYTES = 61, LENGTH_END = 12, CRC_FROM = 21,
    CODEC_BITS = 0x07, LOG_APPEND_TIME = 0x08, CONTROL = 0x20,
};

static inline uint64_t
big_endian(const uint8_t *from, int bytes)
{
    uint64_t value = 0;
    for (int each = 0; each < bytes; each++)
        value = value << 8 | from[each];
    return value;
}

/* Reads batch after batch; whatever is unusual in one is Python's to judge. */
static Pause
take_batches(Fetched *fetched, Batch *batch, Chunk *chunk, Verdict *verdict)
{
    for (; fetched->size - fetched->at >= HEADER_BYTES; fetched->left = -1) {
        const uint8_t *head = fetched->data + fetched->at;
        int64_t length = (int32_t)big_endian(head + 8, 4), size = LENGTH_END + length;
        int attributes = (int)big_endian(head + 21, 2);
        int32_t count = (int32_t)big_endian(head + 57, 4);
        if (head[16] != 2 || size < HEADER_BYTES)
            return FOR_PYTHON;
        if (size > fetched->size - fetched->at)
            return ALL_READ;
        int is_control = (attributes & CONTROL) != 0;
        if (!is_control && (attributes & CODEC_BITS || count < 0))
            return FOR_PYTHON;
        if (fetched->left < 0) {
            if (fetched->check_crcs
                && crc32c(head + CRC_FROM, size - CRC_FROM) != (uint32_t)big_endian(head + 17, 4))
                return FOR_PYTHON;
            fetched->inside = HEADER_BYTES;
            fetched->left = count;
        }
        int64_t last;
        batch->base_offset = (int64_t)big_endian(head, 8);
        if (__builtin_add_overflow(batch->base_offset, (int32_t)big_endian(head + 23, 4), &last))
            return FOR_PYTHON;
        batch->append_time = (attributes & LOG_APPEND_TIME) != 0;
        batch->base_timestamp = (int64_t)big_endian(head + (batch->append_time ? 35 : 27), 8);
        if (batch->base_offset < batch->end && last >= batch->first && !is_control) {
            Reader reader = {.data = head, .size = size, .at = fetched->inside};
            *verdict = take_records(&reader, batch, chunk, &fetched->left);
            fetched->inside = reader.at;
            if (*verdict != FINE)
                return *verdict == FULL ? CHUNK_FULL : REFUSED;
        }
        fetched->at += size;
    }
    return ALL_READ;
}

static PyObject *
fill_plain(PyObject *module, PyObject *args)
{
    Py_buffer data;
    PyObject *buffers, *result = NULL;
    long long at, inside, left, rows, headers, first, end, oldest, newest;
    Fetched fetched;
    Batch batch = {0};
    if (!PyArg_ParseTuple(args, "y*(LLL)p(LLLL)p(LL)O!:fill_plain", &data, &at, &inside, &left,
                          &fetched.check_crcs, &first, &end, &oldest, &newest, &batch.with_headers,
                          &rows, &headers, &PyTuple_Type, &buffers))
        return NULL;
    batch.first = first, batch.end = end, batch.oldest = oldest, batch.newest = newest;
    fetched.data = data.buf, fetched.size = data.len;
    fetched.at = at, fetched.inside = inside, fetched.left = left;
    Chunk chunk = {.rows = rows, .headers = headers};
    if (at < 0 || at > data.len || inside < 0 || inside > data.len - at)
        PyErr_SetString(PyExc_ValueError, "a place outside the fetched bytes");
    else if (hold(&chunk, buffers)) {
        Pause pause;
        Verdict verdict = FINE;
        Py_BEGIN_ALLOW_THREADS
        pause = take_batches(&fetched, &batch, &chunk, &verdict);
        Py_END_ALLOW_THREADS
        release(&chunk);
        if (pause == REFUSED)
            refuse(module, verdict, &batch);
        else
            result = Py_BuildValue("(LLL)i", (long long)fetched.at, (long long)fetched.inside,
                                   (long long)fetched.left, (int)pause);
    }
    PyBuffer_Release(&data);
    return result;
}

/* The module's state is one reference: the class of the refusal. */

static int
load(PyObject *module)
{
    crc32c_prepare();
    PyObject *invalid = PyImport_ImportModule("penstock.record.invalid");
    if (invalid == NULL)
        return -1;
    PyObject **error = PyModule_GetState(module);
    *error = PyObject_GetAttrString(invalid, "InvalidRecord");
    Py_DECREF(invalid);
    return *error == NULL ? -1 : 0;
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    PyObject **error = PyModule_GetState(module);
    if (error != NULL)
        Py_VISIT(*error);
    return 0;
}

static int
clear(PyObject *module)
{
    PyObject **error = PyModule_GetState(module);
    if (error != NULL)
        Py_CLEAR(*error);
    return 0;
}

static PyMethodDef METHODS[] = {
    {"fill", fill, METH_VARARGS, NULL},
    {"fill_plain", fill_plain, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {
    {Py_mod_exec, load},
    {0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "penstock.spark.decode._fill",
    .m_size = sizeof(PyObject *),
    .m_methods = METHODS,
    .m_slots = SLOTS,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC
PyInit__fill(void)
{
    return PyModuleDef_Init(&MODULE);
}
