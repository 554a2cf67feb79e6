import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts the words of a topic's records; each new count is a record of its own. Takes the topics
 * and any settings of Kafka Streams as name=value, and runs until it is killed.
 */
public final class WordCount {
    public static void main(String[] args) throws Exception {
        String from = args[0];
        String to = args[1];
        Properties settings = new Properties();
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        for (String pair : Arrays.copyOfRange(args, 2, args.length)) {
            String[] parts = pair.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        var builder = new StreamsBuilder();
        builder.<String, String>stream(from)
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word)
                .count()
                .toStream()
                .mapValues(count -> Long.toString(count))
                .to(to, Produced.with(Serdes.String(), Serdes.String()));
        try (var streams = new KafkaStreams(builder.build(settings), settings)) {
            streams.setStateListener((now, before) -> System.out.println("state " + now));
            streams.setUncaughtExceptionHandler(
                    error -> {
                        System.out.println("failed " + error);
                        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
                    });
            streams.start();
            while (streams.state() != KafkaStreams.State.ERROR) {
                Thread.sleep(50);
            }
        }
        System.exit(1);
    }
}
