import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The official producer in transactions: even ones are committed, odd ones aborted, then a copy. */
public final class Transactions {
    private static final Duration WAIT = Duration.ofSeconds(20);

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        String from = args[1];
        String to = args[2];
        try (var producer = producer(bootstrap, from)) {
            producer.initTransactions();
            for (int number = 0; number < 10; number++) {
                producer.beginTransaction();
                for (int record = 0; record < 4; record++) {
                    producer.send(new ProducerRecord<>(from, record % 2, null, number + "-" + record));
                }
                if (number % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.flush();
                    producer.abortTransaction();
                }
            }
            producer.beginTransaction();
            producer.abortTransaction();
            System.out.println("read " + String.join(" ", values(bootstrap, from, 20)));
            System.out.println("copied " + copy(bootstrap, from, to, producer));
            System.out.println("read " + String.join(" ", values(bootstrap, to, 20)));
            System.out.println("fenced " + fenced(bootstrap, from, producer));
        }
    }

    private static int copy(
            String bootstrap, String from, String to, KafkaProducer<String, String> producer) {
        int copied = 0;
        try (var consumer = consumer(bootstrap, "copy-" + from)) {
            consumer.subscribe(List.of(from));
            while (copied < 20) {
                var records = consumer.poll(WAIT);
                producer.beginTransaction();
                for (var record : records) {
                    producer.send(new ProducerRecord<>(to, record.partition(), null, record.value()));
                }
                var offsets = new java.util.HashMap<TopicPartition, OffsetAndMetadata>();
                for (var partition : records.partitions()) {
                    offsets.put(partition, new OffsetAndMetadata(consumer.position(partition)));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
                copied += records.count();
            }
            for (var entry : consumer.committed(consumer.assignment()).entrySet()) {
                if (entry.getValue().offset() != consumer.position(entry.getKey())) {
                    throw new IllegalStateException("committed " + entry);
                }
            }
        }
        return copied;
    }

    private static boolean fenced(
            String bootstrap, String topic, KafkaProducer<String, String> zombie) throws Exception {
        zombie.beginTransaction();
        zombie.send(new ProducerRecord<>(topic, 0, null, "of a zombie")).get();
        try (var next = producer(bootstrap, topic)) {
            next.initTransactions();
            try {
                zombie.commitTransaction();
                return false;
            } catch (ProducerFencedException expected) {
                return true;
            }
        }
    }

    private static List<String> values(String bootstrap, String topic, int count) {
        var found = new ArrayList<String>();
        try (var consumer = consumer(bootstrap, "nobody")) {
            var all = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
            consumer.assign(all);
            consumer.seekToBeginning(all);
            while (found.size() < count) {
                for (ConsumerRecord<String, String> record : consumer.poll(WAIT)) {
                    found.add(record.value());
                }
            }
        }
        Collections.sort(found);
        return found;
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String id) {
        return new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap, "transactional.id", id),
                new StringSerializer(),
                new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
        return new KafkaConsumer<>(
                Map.of(
                        "bootstrap.servers", bootstrap,
                        "group.id", group,
                        "group.protocol", "classic",
                        "isolation.level", "read_committed",
                        "auto.offset.reset", "earliest",
                        "enable.auto.commit", "false"),
                new StringDeserializer(),
                new StringDeserializer());
    }
}
