/* Rows of Arrow columns as records of a batch, in C: see encode.py, whose twins in Python they must equal.

   Columns are what Arrow lays out: offsets into one run of bytes, and a bit a row that tells nulls. Lengths
   are checked before anything is read, so that a column which lies about itself ends in ValueError.  */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* A column as encode.py's `ArrowColumn` has it: (offsets, data, valid, first, width). */
typedef struct {
    int present;
    Py_buffer offsets, data, valid;
    int64_t first;              /* the row of the buffers that is row 0 of the column */
    int wide;                   /* offsets have 64 bits */
    int64_t rows;               /* how many rows the offsets are enough for */
} Column;

typedef struct {
    const uint8_t *bytes;       /* NULL: a null */
    int64_t size;
} Field;

static void
release(Column *column)
{
    if (column->offsets.obj != NULL)
        PyBuffer_Release(&column->offsets);
    if (column->data.obj != NULL)
        PyBuffer_Release(&column->data);
    if (column->valid.obj != NULL)
        PyBuffer_Release(&column->valid);
}

static int
open_buffer(PyObject *from, Py_buffer *into)
{
    if (from == Py_None)
        return 0;
    return PyObject_GetBuffer(from, into, PyBUF_SIMPLE);
}

/* None is a column of nulls. */
static int
open_column(PyObject *from, Column *column)
{
    memset(column, 0, sizeof *column);
    if (from == Py_None)
        return 0;
    PyObject *offsets, *data, *valid;
    long long first;
    int width;
    if (!PyArg_ParseTuple(from, "OOOLi", &offsets, &data, &valid, &first, &width))
        return -1;
    if (first < 0 || (width != 4 && width != 8)) {
        PyErr_SetString(PyExc_ValueError, "a column begins at a negative row or has odd offsets");
        return -1;
    }
    if (open_buffer(offsets, &column->offsets) < 0 || open_buffer(data, &column->data) < 0
        || open_buffer(valid, &column->valid) < 0)
        return -1;
    column->present = 1;
    column->first = first;
    column->wide = width == 8;
    column->rows = column->offsets.len / width - 1 - first;
    if (column->valid.buf != NULL && column->valid.len * 8 - first < column->rows)
        column->rows = column->valid.len * 8 - first;
    return 0;
}

static inline int64_t
offset_at(const Column *column, int64_t index)
{
    if (column->wide) {
        int64_t value;
        memcpy(&value, (const char *)column->offsets.buf + index * 8, 8);
        return value;
    }
    int32_t value;
    memcpy(&value, (const char *)column->offsets.buf + index * 4, 4);
    return value;
}

static inline int
is_null(const Column *column, int64_t index)
{
    const uint8_t *bits = column->valid.buf;
    return bits != NULL && !(bits[index >> 3] >> (index & 7) & 1);
}

/* 0, or -1 when the column ends before. */
static inline int
read_field(const Column *column, int64_t row, Field *field)
{
    field->bytes = NULL;
    field->size = -1;
    if (!column->present)
        return 0;
    if (row < 0 || row >= column->rows)
        return -1;
    int64_t index = column->first + row;
    if (is_null(column, index))
        return 0;
    int64_t start = offset_at(column, index), end = offset_at(column, index + 1);
    if (start < 0 || end < start || end > column->data.len || end - start > INT32_MAX)
        return -1;
    field->bytes = end > start ? (const uint8_t *)column->data.buf + start : (const uint8_t *)"";
    field->size = end - start;
    return 0;
}

static inline uint64_t
zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static inline int
varint_size(int64_t value)
{
    uint64_t raw = zigzag(value);
    int size = 1;
    while (raw > 0x7F) {
        raw >>= 7;
        size++;
    }
    return size;
}

static inline uint8_t *
write_varint(uint8_t *at, int64_t value)
{
    uint64_t raw = zigzag(value);
    while (raw > 0x7F) {
        *at++ = (uint8_t)(raw | 0x80);
        raw >>= 7;
    }
    *at++ = (uint8_t)raw;
    return at;
}

static inline int64_t
field_size(const Field *field)
{
    return varint_size(field->size) + (field->size > 0 ? field->size : 0);
}

static inline uint8_t *
write_field(uint8_t *at, const Field *field)
{
    at = write_varint(at, field->size);
    if (field->size > 0) {
        memcpy(at, field->bytes, field->size);
        at += field->size;
    }
    return at;
}

typedef struct {
    Column key, value;
    Column lists;               /* of headers: its offsets count headers, it has no data */
    Column names, values;       /* of all headers, one after the other */
} Rows;

/* The headers of a row are [start, end) of names and values; 0, or -1 where those end before. */
static inline int
header_range(const Rows *rows, int64_t row, int64_t *start, int64_t *end)
{
    *start = *end = 0;
    const Column *lists = &rows->lists;
    if (!lists->present)
        return 0;
    if (row < 0 || row >= lists->rows)
        return -1;
    int64_t index = lists->first + row;
    if (is_null(lists, index))
        return 0;
    *start = offset_at(lists, index);
    *end = offset_at(lists, index + 1);
    return *start < 0 || *end < *start || *end - *start > INT32_MAX ? -1 : 0;
}

typedef enum { WRITTEN, FULL, BAD_COLUMN, NULL_NAME } Verdict;

typedef struct {
    uint8_t *out;
    int64_t at, limit;
    int64_t needed;             /* by the record that found no room */
} Body;

static Verdict
append_row(Body *body, const Rows *rows, int64_t row, int64_t timestamp_delta, int64_t offset_delta)
{
    Field key, value, field;
    int64_t start, end;
    if (read_field(&rows->key, row, &key) < 0 || read_field(&rows->value, row, &value) < 0
        || header_range(rows, row, &start, &end) < 0)
        return BAD_COLUMN;
    int64_t size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + field_size(&key)
                   + field_size(&value) + varint_size(end - start);
    for (int64_t each = start; each < end; each++) {
        if (read_field(&rows->names, each, &field) < 0)
            return BAD_COLUMN;
        if (field.bytes == NULL)
            return NULL_NAME;
        size += field_size(&field);
        if (read_field(&rows->values, each, &field) < 0)
            return BAD_COLUMN;
        size += field_size(&field);
    }
    body->needed = varint_size(size) + size;
    if (body->at + body->needed > body->limit)
        return FULL;
    uint8_t *at = write_varint(body->out + body->at, size);
    *at++ = 0; /* attributes, none of them in use */
    at = write_varint(at, timestamp_delta);
    at = write_varint(at, offset_delta);
    at = write_field(at, &key);
    at = write_field(at, &value);
    at = write_varint(at, end - start);
    for (int64_t each = start; each < end; each++) {
        read_field(&rows->names, each, &field);
        at = write_field(at, &field);
        read_field(&rows->values, each, &field);
        at = write_field(at, &field);
    }
    body->at = at - body->out;
    return WRITTEN;
}

static inline int32_t
int32_at(const Py_buffer *buffer, int64_t index)
{
    int32_t value;
    memcpy(&value, (const char *)buffer->buf + index * 4, 4);
    return value;
}

static inline int64_t
int64_at(const Py_buffer *buffer, int64_t index)
{
    int64_t value;
    memcpy(&value, (const char *)buffer->buf + index * 8, 8);
    return value;
}

/* append(out, at, limit, order, start, end, timestamps, base_timestamp, first_delta,
          (key, value, lists, names, values)) -> (next, at, max_timestamp, needed) */
static PyObject *
append(PyObject *module, PyObject *args)
{
    PyObject *out_from, *order_from, *timestamps_from, *key, *value, *lists, *names, *values;
    long long at, limit, start, end, base, first_delta;
    if (!PyArg_ParseTuple(args, "OLLOLLOLL(OOOOO)", &out_from, &at, &limit, &order_from, &start, &end,
                          &timestamps_from, &base, &first_delta, &key, &value, &lists, &names, &values))
        return NULL;
    PyObject *answer = NULL;
    Py_buffer out = {0}, order = {0}, timestamps = {0};
    Rows rows;
    memset(&rows, 0, sizeof rows);
    if (PyObject_GetBuffer(out_from, &out, PyBUF_WRITABLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(order_from, &order, PyBUF_SIMPLE) < 0
        || PyObject_GetBuffer(timestamps_from, &timestamps, PyBUF_SIMPLE) < 0
        || open_column(key, &rows.key) < 0 || open_column(value, &rows.value) < 0
        || open_column(lists, &rows.lists) < 0 || open_column(names, &rows.names) < 0
        || open_column(values, &rows.values) < 0)
        goto done;
    if (at < 0 || limit < at || limit > out.len || start < 0 || end < start || end > order.len / 4) {
        PyErr_SetString(PyExc_ValueError, "rows or room out of range");
        goto done;
    }
    Body body = {.out = out.buf, .at = at, .limit = limit};
    int64_t newest = INT64_MIN, index = start, stamps = timestamps.len / 8;
    Verdict verdict = WRITTEN;
    for (; index < end; index++) {
        int64_t row = int32_at(&order, index);
        if (row < 0 || row >= stamps) {
            verdict = BAD_COLUMN;
            break;
        }
        int64_t timestamp = int64_at(&timestamps, row);
        int64_t delta = (int64_t)((uint64_t)timestamp - (uint64_t)base);
        verdict = append_row(&body, &rows, row, delta, first_delta + index - start);
        if (verdict != WRITTEN)
            break;
        if (timestamp > newest)
            newest = timestamp;
    }
    if (verdict == BAD_COLUMN)
        PyErr_Format(PyExc_ValueError, "a column ends before row %lld", (long long)index);
    else if (verdict == NULL_NAME)
        PyErr_SetString(PyExc_ValueError, "a header's key is null");
    else
        answer = Py_BuildValue("LLLL", (long long)index, (long long)body.at, (long long)newest,
                               verdict == FULL ? (long long)body.needed : 0LL);
done:
    release(&rows.key);
    release(&rows.value);
    release(&rows.lists);
    release(&rows.names);
    release(&rows.values);
    if (timestamps.obj != NULL)
        PyBuffer_Release(&timestamps);
    if (order.obj != NULL)
        PyBuffer_Release(&order);
    PyBuffer_Release(&out);
    return answer;
}

static uint32_t
murmur2(const uint8_t *data, int64_t size)
{
    const uint32_t multiplier = 0x5BD1E995;
    uint32_t mixed = 0x9747B28C ^ (uint32_t)size;
    for (; size >= 4; data += 4, size -= 4) {
        uint32_t word = (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16
                        | (uint32_t)data[3] << 24;
        word *= multiplier;
        word ^= word >> 24;
        mixed = mixed * multiplier ^ word * multiplier;
    }
    if (size > 2)
        mixed ^= (uint32_t)data[2] << 16;
    if (size > 1)
        mixed ^= (uint32_t)data[1] << 8;
    if (size > 0)
        mixed = (mixed ^ data[0]) * multiplier;
    mixed = (mixed ^ mixed >> 13) * multiplier;
    return mixed ^ mixed >> 15;
}

/* partitions(key, count, into): fills `into`, int32 a row: the partition of its key, -1 for a null. */
static PyObject *
partitions(PyObject *module, PyObject *args)
{
    PyObject *key_from, *into_from;
    long count;
    if (!PyArg_ParseTuple(args, "OlO", &key_from, &count, &into_from))
        return NULL;
    if (count <= 0) {
        PyErr_SetString(PyExc_ValueError, "a topic has at least one partition");
        return NULL;
    }
    Column key;
    Py_buffer into;
    if (open_column(key_from, &key) < 0) {
        release(&key);
        return NULL;
    }
    if (PyObject_GetBuffer(into_from, &into, PyBUF_WRITABLE) < 0) {
        release(&key);
        return NULL;
    }
    int64_t rows = into.len / 4, row = 0;
    for (; row < rows; row++) {
        Field field;
        if (read_field(&key, row, &field) < 0)
            break;
        int32_t chosen = -1;
        if (field.bytes != NULL)
            chosen = (int32_t)((murmur2(field.bytes, field.size) & 0x7FFFFFFF) % count);
        memcpy((char *)into.buf + row * 4, &chosen, 4);
    }
    PyBuffer_Release(&into);
    release(&key);
    if (row < rows) {
        PyErr_Format(PyExc_ValueError, "a column ends before row %lld", (long long)row);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"append", append, METH_VARARGS, NULL},
    {"partitions", partitions, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {
    {0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "penstock.spark.sink._encode",
    .m_methods = METHODS,
    .m_slots = SLOTS,
};

PyMODINIT_FUNC
PyInit__encode(void)
{
    return PyModuleDef_Init(&MODULE);
}
