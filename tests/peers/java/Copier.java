import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Copies with the official client; see tests/clients/copying/job.py. */
public final class Copier {
    private static volatile boolean ending;

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        String group = args[1];
        String source = args[3];
        String target = args[4];
        double abortChance = Double.parseDouble(args[5]);
        var left = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ending = true;
            try {
                left.await();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }));
        try (var producer = producer(bootstrap, args[2]); var consumer = consumer(bootstrap, group)) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            while (!ending) {
                var records = consumer.poll(Duration.ofMillis(100));
                if (!records.isEmpty()) {
                    boolean aborts = ThreadLocalRandom.current().nextDouble() < abortChance;
                    copy(records, target, aborts, consumer, producer);
                }
            }
        } finally {
            left.countDown();
        }
    }

    private static void copy(
            ConsumerRecords<String, String> records,
            String target,
            boolean aborts,
            KafkaConsumer<String, String> consumer,
            KafkaProducer<String, String> producer) {
        producer.beginTransaction();
        try {
            for (var record : records) {
                producer.send(new ProducerRecord<>(
                        target, record.partition(), null, "copy of " + record.value()));
            }
            producer.sendOffsetsToTransaction(records.nextOffsets(), consumer.groupMetadata());
            if (!aborts) {
                producer.commitTransaction();
                return;
            }
            producer.flush();
        } catch (CommitFailedException replaced) {
            // The group went on without this member.
        }
        producer.abortTransaction();
        for (var partition : records.partitions()) {
            if (consumer.assignment().contains(partition)) {
                consumer.seek(partition, records.records(partition).get(0).offset());
            }
        }
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String id) {
        return new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap, "transactional.id", id),
                new StringSerializer(),
                new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
        var config = new HashMap<String, Object>(Map.of(
                "bootstrap.servers", bootstrap,
                "group.id", group,
                "group.protocol", "classic",
                "session.timeout.ms", 3000,
                "heartbeat.interval.ms", 300,
                "max.poll.records", 20,
                "isolation.level", "read_committed",
                "auto.offset.reset", "earliest",
                "enable.auto.commit", "false",
                "fetch.max.wait.ms", 100));
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }
}
