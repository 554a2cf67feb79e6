import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/**
 * Apache Kafka's own record classes as oracle.
 *
 * write: prints batches that they build, a line each: name, batch in hex.
 * read: tells what they read, as JSON, of each batch in hex on standard input.
 * produced: tells which error a broker answers; lines of compacted, log append time, now,
 *     before and after bound, batch in hex.
 * stored: the same lines; tells the batch, in hex, as the broker would store it, or the error.
 */
public class Batches {
    static final HexFormat HEX = HexFormat.of();
    static final long TIME = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) {
            write();
            return;
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine())
            System.out.println(switch (args[0]) {
                case "read" -> read(line);
                case "produced" -> produced(line.split(" ", -1), false);
                case "stored" -> produced(line.split(" ", -1), true);
                default -> throw new IllegalArgumentException(args[0]);
            });
    }

    // ---- write

    static void write() {
        for (CompressionType type : CompressionType.values()) {
            Compression codec = Compression.of(type).build();
            print("java-" + type.name, fill(builder(codec, TimestampType.CREATE_TIME, -1, (short) -1, -1, false)));
            MemoryRecordsBuilder large = builder(codec, TimestampType.CREATE_TIME, -1, (short) -1, -1, false);
            large.appendWithOffset(0, TIME, null, "several blocks ".repeat(12_000).getBytes(StandardCharsets.UTF_8));
            if (type != CompressionType.NONE)
                print("java-" + type.name + "-blocks", large.build());
        }
        Compression none = Compression.NONE;
        print("java-log-append-time", fill(builder(none, TimestampType.LOG_APPEND_TIME, -1, (short) -1, -1, false)));
        print("java-idempotent", fill(builder(none, TimestampType.CREATE_TIME, 4001, (short) 3, 2_147_483_646, false)));
        print("java-transactional", fill(builder(none, TimestampType.CREATE_TIME, 4001, (short) 3, 17, true)));
        print("java-commit", MemoryRecords.withEndTransactionMarker(70, TIME, 5, 4001, (short) 3,
            new EndTransactionMarker(ControlRecordType.COMMIT, 9)));
        print("java-abort", MemoryRecords.withEndTransactionMarker(71, TIME, 5, 4001, (short) 3,
            new EndTransactionMarker(ControlRecordType.ABORT, 9)));
        print("java-delete-horizon", fill(new MemoryRecordsBuilder(new ByteBufferOutputStream(4096), (byte) 2, none,
            TimestampType.CREATE_TIME, 0, -1, -1, (short) -1, -1, false, false, 5, 4096, TIME + 86_400_000)));
        ByteBuffer emptied = ByteBuffer.allocate(61);
        DefaultRecordBatch.writeEmptyHeader(emptied, (byte) 2, 4001, (short) 3, 17, 70, 79, 5,
            TimestampType.CREATE_TIME, TIME, true, false);
        emptied.flip();
        print("java-emptied", MemoryRecords.readableRecords(emptied));
    }

    static MemoryRecordsBuilder builder(Compression codec, TimestampType type, long producerId, short epoch,
                                        int sequence, boolean transactional) {
        return new MemoryRecordsBuilder(ByteBuffer.allocate(4096), (byte) 2, codec, type, 0, TIME + 5000, producerId,
            epoch, sequence, transactional, false, 5, 4096);
    }

    static MemoryRecords fill(MemoryRecordsBuilder builder) {
        Header[] none = new Header[0];
        Header[] some = {new RecordHeader("trace", new byte[] {0, 1, (byte) 255}), new RecordHeader("null", null),
            new RecordHeader("größe", new byte[0]), new RecordHeader("", new byte[] {1})};
        builder.appendWithOffset(0, TIME, bytes("key"), bytes("value"), none);
        builder.appendWithOffset(1, TIME - 1, bytes("tombstone"), null, none);
        builder.appendWithOffset(2, TIME + 70_000, null, bytes("no key"), some);
        builder.appendWithOffset(3, TIME + 3, bytes(""), bytes(""), none);
        builder.appendWithOffset(4, TIME + 4, bytes("k".repeat(100)), bytes("v".repeat(200)), some);
        return builder.build();
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static void print(String name, MemoryRecords records) {
        System.out.println(name + " " + hex(records));
    }

    static String hex(MemoryRecords records) {
        byte[] data = new byte[records.sizeInBytes()];
        records.buffer().duplicate().get(data);
        return HEX.formatHex(data);
    }

    // ---- read

    static String read(String hex) {
        try {
            List<String> batches = new ArrayList<>();
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(hex))).batches()) {
                batch.ensureValid();
                batches.add(describe((DefaultRecordBatch) batch));
            }
            return batches.size() == 1 ? batches.get(0) : "{\"batches\": " + batches.size() + "}";
        } catch (RuntimeException refusal) {
            return "{\"refused\": \"" + refusal.getClass().getSimpleName() + "\"}";
        }
    }

    static String describe(DefaultRecordBatch batch) {
        List<String> records = new ArrayList<>();
        for (Record record : batch) {
            List<String> headers = new ArrayList<>();
            for (Header header : record.headers())
                headers.add("[" + data(bytes(header.key())) + ", " + data(header.value()) + "]");
            records.add("{\"offset\": " + record.offset() + ", \"timestamp\": " + record.timestamp()
                + ", \"key\": " + data(record.key()) + ", \"value\": " + data(record.value())
                + ", \"headers\": [" + String.join(", ", headers) + "]}");
        }
        OptionalLong horizon = batch.deleteHorizonMs();
        return "{\"base_offset\": " + batch.baseOffset() + ", \"size_bytes\": " + batch.sizeInBytes()
            + ", \"leader_epoch\": " + batch.partitionLeaderEpoch() + ", \"crc\": " + batch.checksum()
            + ", \"codec\": \"" + batch.compressionType().name + "\""
            + ", \"is_log_append_time\": " + (batch.timestampType() == TimestampType.LOG_APPEND_TIME)
            + ", \"is_transactional\": " + batch.isTransactional() + ", \"is_control\": " + batch.isControlBatch()
            + ", \"delete_horizon_ms\": " + (horizon.isPresent() ? horizon.getAsLong() : "null")
            + ", \"last_offset\": " + batch.lastOffset() + ", \"next_offset\": " + batch.nextOffset()
            + ", \"base_timestamp\": " + batch.baseTimestamp() + ", \"max_timestamp\": " + batch.maxTimestamp()
            + ", \"producer_id\": " + batch.producerId() + ", \"producer_epoch\": " + batch.producerEpoch()
            + ", \"base_sequence\": " + batch.baseSequence() + ", \"last_sequence\": " + batch.lastSequence()
            + ", \"record_count\": " + batch.countOrNull() + ", \"records\": [" + String.join(", ", records) + "]}";
    }

    static String data(ByteBuffer buffer) {
        if (buffer == null)
            return "null";
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return data(data);
    }

    /** Hex, or the hash of what is too long for eyes and files. */
    static String data(byte[] data) {
        if (data == null)
            return "null";
        if (data.length <= 1000)
            return "\"" + HEX.formatHex(data) + "\"";
        try {
            return "\"sha256 " + HEX.formatHex(MessageDigest.getInstance("SHA-256").digest(data)) + "\"";
        } catch (java.security.NoSuchAlgorithmException missing) {
            throw new IllegalStateException(missing);
        }
    }

    // ---- produced

    static String produced(String[] words, boolean stored) {
        boolean compacted = Boolean.parseBoolean(words[0]);
        TimestampType type = Boolean.parseBoolean(words[1]) ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        Time time = new FixedTime(Long.parseLong(words[2]));
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(words[5])));
        try {
            ProduceRequest.validateRecords((short) 9, records);
            MutableRecordBatch batch = records.batches().iterator().next();
            batch.ensureValid();
            CompressionType codec = batch.compressionType();
            MemoryRecords validated = new LogValidator(records, new TopicPartition("t", 0), time, codec, Compression.of(codec).build(), compacted,
                (byte) 2, type, Long.parseLong(words[3]), Long.parseLong(words[4]), 5, AppendOrigin.CLIENT)
                .validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), new Uncounted(), BufferSupplier.create())
                .validatedRecords();
            return stored ? hex(validated) : "NONE";
        } catch (RecordValidationException refusal) {
            return Errors.forException(refusal.invalidException()).name();
        } catch (RuntimeException refusal) {
            return Errors.forException(refusal).name();
        }
    }

    static class Uncounted implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() { }
        public void recordInvalidOffset() { }
        public void recordInvalidSequence() { }
        public void recordInvalidChecksums() { }
        public void recordNoKeyCompactedTopic() { }
    }

    record FixedTime(long milliseconds) implements Time {
        public long nanoseconds() {
            return milliseconds * 1_000_000;
        }

        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
