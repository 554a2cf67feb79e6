/* The walk over a batch's records, in C. Results and error texts equal those of `walk_in_python` in walk.py.

   Every byte is read once, after a bounds check, and positions are 64 bits wide: a length (at most
   31 bits) may move the position past the end, where the next read ends the walk. So nothing that the
   bytes declare is trusted, even if another thread changes them meanwhile.  */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>

/* From this size on the GIL is released; below, releasing it costs more than the walk. */
#define LARGE_BYTES (1 << 20)

typedef enum {
    FINE,
    CUT,
    VARINT_ENDLESS,
    VARINT_TOO_WIDE,
    SIZE,
    OFFSET_DELTA,
    NO_KEY,
    HEADER_COUNT,
    HEADER_KEY,
    FIELDS,
    BYTES_LEFT,
} Verdict;

typedef struct {
    const uint8_t *data;
    int64_t size, at;
    int64_t index, declared;    /* of the record; its size, as it says */
    int64_t found;              /* the number that is wrong */
    int64_t oldest, newest;     /* timestamp deltas */
} Walk;

static inline int64_t
unzigzag(uint64_t raw)
{
    return (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
}

static Verdict
read_long(Walk *walk, int bits, int64_t *value)
{
    uint64_t raw = 0;
    for (int shift = 0; shift < bits; shift += 7) {
        if (walk->at >= walk->size)
            return CUT;
        uint64_t byte = walk->data[walk->at++];
        raw |= (byte & 0x7F) << shift;
        if (byte < 0x80) {
            if (shift + 7 > bits && byte >> (bits - shift)) {
                walk->found = bits;
                return VARINT_TOO_WIDE;
            }
            *value = unzigzag(raw);
            return FINE;
        }
    }
    return VARINT_ENDLESS;
}

static inline Verdict
read_number(Walk *walk, int bits, int64_t *value)
{
    /* Nearly all numbers have one byte or two. */
    if (walk->size - walk->at >= 2) {
        uint64_t first = walk->data[walk->at], second = walk->data[walk->at + 1];
        if (first < 0x80) {
            walk->at += 1;
            *value = unzigzag(first);
            return FINE;
        }
        if (second < 0x80) {
            walk->at += 2;
            *value = unzigzag((first & 0x7F) | second << 7);
            return FINE;
        }
    }
    return read_long(walk, bits, value);
}

#define READ(walk, bits, value)                                 \
    do {                                                        \
        Verdict read = read_number((walk), (bits), (value));    \
        if (read != FINE)                                       \
            return read;                                        \
    } while (0)

static Verdict
skip_headers(Walk *walk)
{
    int64_t count, size;
    READ(walk, 32, &count);
    if (count < 0) {
        walk->found = count;
        return HEADER_COUNT;
    }
    while (count-- > 0) {
        READ(walk, 32, &size);
        if (size < 0)
            return HEADER_KEY;
        walk->at += size;
        READ(walk, 32, &size);
        if (size > 0)
            walk->at += size;
    }
    return FINE;
}

static Verdict
walk_record(Walk *walk, int keys_required)
{
    int64_t number;
    READ(walk, 32, &walk->declared);
    int64_t start = walk->at, end = start + walk->declared;
    if (walk->declared < 0 || end > walk->size)
        return SIZE;
    walk->at++; /* attributes, all unused */
    READ(walk, 64, &number);
    if (number > walk->newest)
        walk->newest = number;
    if (number < walk->oldest)
        walk->oldest = number;
    READ(walk, 32, &number);
    if (number != walk->index) {
        walk->found = number;
        return OFFSET_DELTA;
    }
    READ(walk, 32, &number);
    if (number > 0)
        walk->at += number;
    else if (number < 0 && keys_required)
        return NO_KEY;
    READ(walk, 32, &number);
    if (number > 0)
        walk->at += number;
    Verdict headers = skip_headers(walk);
    if (headers != FINE)
        return headers;
    /* Catches lengths that run past the record: the position only ever moves forward. */
    if (walk->at != end) {
        walk->found = walk->at - start;
        return FIELDS;
    }
    return FINE;
}

static Verdict
walk_records(Walk *walk, int64_t count, int keys_required)
{
    for (; walk->index < count; walk->index++) {
        Verdict verdict = walk_record(walk, keys_required);
        if (verdict != FINE)
            return verdict;
    }
    return walk->at == walk->size ? FINE : BYTES_LEFT;
}

static void
refuse(PyObject *error, Verdict verdict, const Walk *walk)
{
    long long index = walk->index, declared = walk->declared, found = walk->found, at = walk->at;
    long long left = walk->size - walk->at;
    switch (verdict) {
    case FINE:
        break;
    case CUT:
        PyErr_Format(error, "record %lld is cut", index);
        break;
    case VARINT_ENDLESS:
        PyErr_Format(error, "a varint before byte %lld does not end", at);
        break;
    case VARINT_TOO_WIDE:
        PyErr_Format(error, "a varint before byte %lld passes %lld bits", at, found);
        break;
    case SIZE:
        PyErr_Format(error, "record %lld of %lld bytes, %lld are left", index, declared, left);
        break;
    case OFFSET_DELTA:
        PyErr_Format(error, "record %lld has offset delta %lld", index, found);
        break;
    case NO_KEY:
        PyErr_Format(error, "record %lld has no key, which a compacted topic needs", index);
        break;
    case HEADER_COUNT:
        PyErr_Format(error, "record %lld has header count %lld", index, found);
        break;
    case HEADER_KEY:
        PyErr_Format(error, "record %lld has a header whose key is null", index);
        break;
    case FIELDS:
        PyErr_Format(error, "record %lld of %lld bytes has %lld", index, declared, found);
        break;
    case BYTES_LEFT:
        PyErr_Format(error, "%lld bytes follow the last record", left);
        break;
    }
}

static PyObject *
walk(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "walk(data, count, keys_required)");
        return NULL;
    }
    long long count = PyLong_AsLongLong(args[1]);
    if (count == -1 && PyErr_Occurred())
        return NULL;
    int keys_required = PyObject_IsTrue(args[2]);
    if (keys_required < 0)
        return NULL;
    Py_buffer data;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    Walk walk = {.data = data.buf, .size = data.len, .oldest = INT64_MAX, .newest = INT64_MIN};
    Verdict verdict;
    if (data.len < LARGE_BYTES)
        verdict = walk_records(&walk, count, keys_required);
    else {
        Py_BEGIN_ALLOW_THREADS
        verdict = walk_records(&walk, count, keys_required);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&data);
    if (verdict != FINE) {
        refuse(*(PyObject **)PyModule_GetState(module), verdict, &walk);
        return NULL;
    }
    if (count <= 0)
        walk.oldest = walk.newest = 0;
    return Py_BuildValue("LL", (long long)walk.oldest, (long long)walk.newest);
}

/* Whether a record is found; its deltas are then in `found`. */
static Verdict
find_record(Walk *walk, int64_t count, int64_t timestamp, int64_t offset, int64_t found[2], int *is_found)
{
    for (; walk->index < count; walk->index++) {
        READ(walk, 32, &walk->declared);
        int64_t end = walk->at + walk->declared;
        if (walk->declared < 0 || end > walk->size)
            return SIZE;
        walk->at++; /* attributes, all unused */
        READ(walk, 64, &found[0]);
        if (found[0] >= timestamp) {
            READ(walk, 32, &found[1]);
            if (found[1] >= offset) {
                *is_found = 1;
                return FINE;
            }
        }
        walk->at = end;
    }
    return FINE;
}

static PyObject *
find(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4) {
        PyErr_SetString(PyExc_TypeError, "find(data, count, timestamp_delta, offset_delta)");
        return NULL;
    }
    long long wanted[3];
    for (int i = 0; i < 3; i++) {
        wanted[i] = PyLong_AsLongLong(args[i + 1]);
        if (wanted[i] == -1 && PyErr_Occurred())
            return NULL;
    }
    Py_buffer data;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    Walk walk = {.data = data.buf, .size = data.len};
    int64_t found[2] = {0, 0};
    int is_found = 0;
    Verdict verdict;
    Py_BEGIN_ALLOW_THREADS
    verdict = find_record(&walk, wanted[0], wanted[1], wanted[2], found, &is_found);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    if (verdict != FINE) {
        refuse(*(PyObject **)PyModule_GetState(module), verdict, &walk);
        return NULL;
    }
    if (!is_found)
        Py_RETURN_NONE;
    return Py_BuildValue("LL", (long long)found[0], (long long)found[1]);
}

/* The module's state is one reference: the class InvalidRecord. */

static int
load(PyObject *module)
{
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
    {"walk", (PyCFunction)(void (*)(void))walk, METH_FASTCALL, NULL},
    {"find", (PyCFunction)(void (*)(void))find, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {
    {Py_mod_exec, load},
    {0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "penstock.record._walk",
    .m_size = sizeof(PyObject *),
    .m_methods = METHODS,
    .m_slots = SLOTS,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC
PyInit__walk(void)
{
    return PyModuleDef_Init(&MODULE);
}
