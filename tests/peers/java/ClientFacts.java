import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Utils;

/**
 * What the Java client does with keys and error codes.
 *
 * murmur2: for each line, number of partitions and key in hex, prints the key's hash and partition.
 * retriable: prints the name of every error that it takes for one to be tried again.
 */
public class ClientFacts {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("retriable")) {
            for (Errors error : Errors.values())
                if (error.exception() instanceof RetriableException)
                    System.out.println(error.name());
            return;
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            byte[] key = HexFormat.of().parseHex(words[1]);
            int partition = BuiltInPartitioner.partitionForKey(key, Integer.parseInt(words[0]));
            System.out.println(Integer.toUnsignedString(Utils.murmur2(key)) + " " + partition);
        }
    }
}
