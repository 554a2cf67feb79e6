import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The official Java client behind the line protocol that tests/clients/piped.py describes. */
public final class Client {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration WAIT = Duration.ofSeconds(20);

    private final String bootstrap;
    private final String groupProtocol;
    private final Admin admin;
    private final Map<List<Object>, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<Integer, KafkaConsumer<byte[], byte[]>> members = new HashMap<>();
    private final Map<Integer, KafkaProducer<byte[], byte[]>> transactors = new HashMap<>();

    private Client(String bootstrap, String groupProtocol) {
        this.bootstrap = bootstrap;
        this.groupProtocol = groupProtocol;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] args) throws Exception {
        var client = new Client(args[0], args.length > 1 ? args[1] : "classic");
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(client.answerOrError(JSON.readTree(line))));
        }
        System.exit(0);
    }

    private Map<String, Object> answerOrError(JsonNode command) {
        try {
            var answer = new HashMap<String, Object>();
            answer.put("ok", answer(command));
            return answer;
        } catch (Exception failed) {
            return refusal(failed instanceof ExecutionException ? failed.getCause() : failed);
        }
    }

    private static Map<String, Object> refusal(Throwable failed) {
        // The consumer's own exception for it is unknown to the table of error codes.
        int code = failed instanceof OffsetOutOfRangeException
                ? Errors.OFFSET_OUT_OF_RANGE.code()
                : Errors.forException(failed).code();
        return Map.of("error", code, "text", String.valueOf(failed));
    }

    private Object answer(JsonNode command) throws Exception {
        String topic = command.path("topic").asText();
        var partition = new TopicPartition(topic, command.path("partition").asInt());
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        switch (command.get("op").asText()) {
            case "create_topic":
                var created = new NewTopic(topic, command.get("count").asInt(), (short) 1)
                        .configs(strings(command.get("configs")));
                return admin.createTopics(List.of(created)).all().get();
            case "delete_topic":
                return admin.deleteTopics(List.of(topic)).all().get();
            case "topics":
                return admin.listTopics().names().get();
            case "partitions":
                return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic)
                        .partitions().stream()
                        .map(part -> List.of(part.partition(), part.leader().id(),
                                ids(part.replicas()), ids(part.isr())))
                        .toList();
            case "create_partitions":
                var more = NewPartitions.increaseTo(command.get("count").asInt());
                return admin.createPartitions(Map.of(topic, more)).all().get();
            case "configs":
                var described = new HashMap<String, String>();
                admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()
                        .forEach(entry -> described.put(entry.name(), entry.value()));
                return described;
            case "alter_configs":
                var changes = new ArrayList<AlterConfigOp>();
                strings(command.get("configs")).forEach((name, value) -> changes.add(
                        new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
                command.get("delete").forEach(name -> changes.add(new AlterConfigOp(
                        new ConfigEntry(name.asText(), ""), AlterConfigOp.OpType.DELETE)));
                return admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
            case "delete_records":
                var before = RecordsToDelete.beforeOffset(command.get("offset").asLong());
                return admin.deleteRecords(Map.of(partition, before)).all().get();
            case "cluster":
                var cluster = admin.describeCluster();
                return List.of(ids(cluster.nodes().get()), cluster.controller().get().id());
            case "offset":
                var spec = spec(command.get("at").asLong());
                return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get()
                        .offset();
            case "produce":
                return send(producer(command), command);
            case "fetch":
                return fetch(partition, command);
            case "join":
                var joining = consumer(
                        command.get("group").asText(), "earliest", command.get("isolation").asText());
                var topics = new ArrayList<String>();
                command.get("topics").forEach(name -> topics.add(name.asText()));
                joining.subscribe(topics);
                members.put(command.get("member").asInt(), joining);
                return null;
            case "poll":
                return poll(members.get(command.get("member").asInt()));
            case "commit":
                var next = new OffsetAndMetadata(command.get("offset").asLong());
                members.get(command.get("member").asInt()).commitSync(Map.of(partition, next));
                return null;
            case "leave":
                members.remove(command.get("member").asInt()).close();
                return null;
            case "transactor":
                var transactor = new KafkaProducer<>(
                        Map.<String, Object>of(
                                "bootstrap.servers", bootstrap,
                                "transactional.id", command.get("id").asText(),
                                "linger.ms", 0),
                        new ByteArraySerializer(), new ByteArraySerializer());
                transactors.put(command.get("transactor").asInt(), transactor);
                transactor.initTransactions();
                return null;
            case "txn_begin":
                transactors.get(command.get("transactor").asInt()).beginTransaction();
                return null;
            case "txn_send":
                return send(transactors.get(command.get("transactor").asInt()), command);
            case "txn_end":
                var ending = transactors.get(command.get("transactor").asInt());
                if (command.get("commits").asBoolean()) {
                    ending.commitTransaction();
                } else {
                    ending.abortTransaction();
                }
                return null;
            case "txn_close":
                transactors.remove(command.get("transactor").asInt()).close();
                return null;
            default:
                throw new IllegalArgumentException(command.get("op").asText());
        }
    }

    private static OffsetSpec spec(long at) {
        if (at == -1) {
            return OffsetSpec.latest();
        }
        return at == -2 ? OffsetSpec.earliest() : OffsetSpec.forTimestamp(at);
    }

    private static List<List<Long>> send(
            KafkaProducer<byte[], byte[]> producer, JsonNode command) throws Exception {
        var sent = new ArrayList<Future<RecordMetadata>>();
        for (JsonNode record : command.get("records")) {
            var headers = new ArrayList<Header>();
            record.get("headers").forEach(header ->
                    headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1)))));
            sent.add(producer.send(new ProducerRecord<>(
                    command.get("topic").asText(),
                    number(record.get("partition")).map(Long::intValue).orElse(null),
                    number(record.get("timestamp")).orElse(null),
                    bytes(record.get("key")),
                    bytes(record.get("value")),
                    headers)));
        }
        producer.flush();
        var placed = new ArrayList<List<Long>>();
        for (var future : sent) {
            placed.add(List.of((long) future.get().partition(), future.get().offset()));
        }
        return placed;
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode command) {
        String codec = command.get("codec").asText();
        String acks = command.get("acks").asText();
        boolean idempotent = command.get("idempotent").asBoolean();
        return producers.computeIfAbsent(List.of(codec, acks, idempotent), how ->
                new KafkaProducer<>(Map.of(
                        "bootstrap.servers", bootstrap,
                        "compression.type", codec,
                        "acks", acks,
                        "enable.idempotence", idempotent,
                        "linger.ms", 0),
                        new ByteArraySerializer(), new ByteArraySerializer()));
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group, String reset, String isolation) {
        var config = new HashMap<String, Object>(Map.of(
                "bootstrap.servers", bootstrap,
                "auto.offset.reset", reset,
                "isolation.level", isolation,
                "enable.auto.commit", false,
                "fetch.max.wait.ms", 100));
        if (group != null) {
            config.put("group.id", group);
            config.put("group.protocol", groupProtocol);
        }
        if (groupProtocol.equals("classic")) {
            // In the consumer protocol the broker sets it, and the client refuses its own.
            config.put("heartbeat.interval.ms", 300);
        }
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private List<List<Map<String, Object>>> fetch(TopicPartition partition, JsonNode command) {
        var found = new ArrayList<List<Map<String, Object>>>();
        try (var consumer = consumer(null, command.get("reset").asText(), "read_uncommitted")) {
            consumer.assign(List.of(partition));
            for (JsonNode read : command.get("reads")) {
                if (read.get(0).asLong() < 0) {
                    consumer.seekToBeginning(List.of(partition));
                } else {
                    consumer.seek(partition, read.get(0).asLong());
                }
                found.add(read(consumer, read.get(1).asInt()));
            }
        }
        return found;
    }

    private static List<Map<String, Object>> read(
            KafkaConsumer<byte[], byte[]> consumer, int count) {
        var records = new ArrayList<Map<String, Object>>();
        long deadline = System.nanoTime() + WAIT.toNanos();
        while (records.size() < count) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(records.size() + " of " + count + " records came");
            }
            consumer.poll(WAIT).forEach(record -> records.add(json(record)));
        }
        return records.subList(0, count);
    }

    private static List<Object> poll(KafkaConsumer<byte[], byte[]> consumer) {
        var records = new ArrayList<Map<String, Object>>();
        consumer.poll(Duration.ofMillis(100)).forEach(record -> records.add(json(record)));
        var held = consumer.assignment().stream()
                .map(part -> List.of(part.topic(), part.partition())).toList();
        return List.of(records, held);
    }

    private static Map<String, Object> json(ConsumerRecord<byte[], byte[]> record) {
        var headers = new ArrayList<List<String>>();
        record.headers().forEach(header -> headers.add(List.of(header.key(), text(header.value()))));
        var fields = new HashMap<String, Object>();
        fields.put("key", text(record.key()));
        fields.put("value", text(record.value()));
        fields.put("headers", headers);
        fields.put("timestamp", record.timestamp());
        fields.put("partition", record.partition());
        fields.put("offset", record.offset());
        return fields;
    }

    private static Map<String, String> strings(JsonNode object) {
        var strings = new HashMap<String, String>();
        object.fields().forEachRemaining(
                field -> strings.put(field.getKey(), field.getValue().asText()));
        return strings;
    }

    private static List<Integer> ids(Collection<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }

    private static Optional<Long> number(JsonNode node) {
        return node.isNull() ? Optional.empty() : Optional.of(node.asLong());
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
