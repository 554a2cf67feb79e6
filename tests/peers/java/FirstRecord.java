import java.nio.file.Files;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;

/**
 * How long an application with state waits for its first record: prints the milliseconds from the
 * start of its threads, once for each of so many applications. Takes a topic with records, the
 * number of applications and settings of Kafka Streams as name=value.
 */
public final class FirstRecord {
    public static void main(String[] args) throws Exception {
        String from = args[0];
        for (int number = 0; number < Integer.parseInt(args[1]); number++) {
            Properties settings = new Properties();
            settings.put("default.key.serde", Serdes.StringSerde.class);
            settings.put("default.value.serde", Serdes.StringSerde.class);
            settings.put("state.dir", Files.createTempDirectory("first-record").toString());
            for (String pair : Arrays.copyOfRange(args, 2, args.length)) {
                String[] parts = pair.split("=", 2);
                settings.put(parts[0], parts[1]);
            }
            settings.put("application.id", "first-" + number + "-" + System.nanoTime());
            var first = new CountDownLatch(1);
            var builder = new StreamsBuilder();
            builder.<String, String>stream(from)
                    .groupByKey()
                    .count()
                    .toStream()
                    .peek((key, count) -> first.countDown());
            try (var streams = new KafkaStreams(builder.build(settings), settings)) {
                long began = System.nanoTime();
                streams.start();
                if (!first.await(60, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("no record within 60 s");
                }
                System.out.println((System.nanoTime() - began) / 1_000_000);
            }
        }
    }
}
