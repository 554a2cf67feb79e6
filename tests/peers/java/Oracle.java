import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Kafka's own message classes behind a pipe: one question a line, one answer a line.
 *
 * <pre>
 * NAME VERSION HEX        HEX JSON: the message read, then written again
 * JSON NAME VERSION JSON  HEX: the message as bytes
 * ERRORS                  {name: code}
 * APIS                    [{key, name, min, max, ...}]
 * </pre>
 *
 * NAME is a message such as FetchRequest, or a class with its package. Whatever fails answers
 * "ERR text".
 */
public final class Oracle {
    private static final String MESSAGES = "org.apache.kafka.common.message.";
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answerOrError(line));
        }
    }

    private static String answerOrError(String line) {
        try {
            return answer(line);
        } catch (InvocationTargetException wrapped) {
            return error(wrapped.getCause());
        } catch (Exception | LinkageError | OutOfMemoryError | StackOverflowError failed) {
            return error(failed);
        }
    }

    private static String error(Throwable failed) {
        return "ERR " + failed.toString().replaceAll("\\s+", " ");
    }

    private static String answer(String line) throws Exception {
        if (line.equals("ERRORS")) {
            return errors().toString();
        }
        if (line.equals("APIS")) {
            return apis().toString();
        }
        if (line.startsWith("JSON ")) {
            String[] words = line.split(" ", 4);
            short version = Short.parseShort(words[2]);
            return HEX.formatHex(write(fromJson(words[1], version, words[3]), version));
        }
        String[] words = line.split(" ", 3);
        short version = Short.parseShort(words[1]);
        Message message = read(words[0], version, HEX.parseHex(words[2]));
        return HEX.formatHex(write(message, version)) + " " + toJson(message, version);
    }

    private static Message read(String name, short version, byte[] bytes) throws Exception {
        Message message = empty(name, version);
        var from = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
        message.read(from, version);
        if (from.remaining() > 0) {
            throw new IllegalArgumentException(from.remaining() + " bytes are left over");
        }
        return message;
    }

    /** A new message; the classes take a version beyond their last for their last, we do not. */
    private static Message empty(String name, short version) throws Exception {
        var message = (Message) messageClass(name).getConstructor().newInstance();
        if (version < message.lowestSupportedVersion()
                || version > message.highestSupportedVersion()) {
            throw new IllegalArgumentException(name + " has no version " + version);
        }
        return message;
    }

    private static byte[] write(Message message, short version) {
        var cache = new ObjectSerializationCache();
        var buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(buffer.remaining() + " bytes were not written");
        }
        return buffer.array();
    }

    private static JsonNode toJson(Message message, short version) throws Exception {
        Class<?> type = message.getClass();
        return (JsonNode)
                converter(type).getMethod("write", type, short.class).invoke(null, message, version);
    }

    private static Message fromJson(String name, short version, String json) throws Exception {
        return (Message)
                converter(empty(name, version).getClass())
                        .getMethod("read", JsonNode.class, short.class)
                        .invoke(null, MAPPER.readTree(json), version);
    }

    private static Class<?> converter(Class<?> type) throws ClassNotFoundException {
        return Class.forName(type.getName() + "JsonConverter");
    }

    private static Class<?> messageClass(String name) throws ClassNotFoundException {
        if (name.contains(".")) {
            return Class.forName(name);
        }
        try {
            return Class.forName(MESSAGES + name + "Data");
        } catch (ClassNotFoundException plain) {
            return Class.forName(MESSAGES + name);
        }
    }

    private static ObjectNode errors() {
        ObjectNode codes = MAPPER.createObjectNode();
        for (Errors error : Errors.values()) {
            codes.put(error.name(), error.code());
        }
        return codes;
    }

    private static ArrayNode apis() {
        ArrayNode all = MAPPER.createArrayNode();
        for (ApiKeys api : ApiKeys.values()) {
            ApiMessageType type = api.messageType;
            ObjectNode row = all.addObject();
            row.put("key", api.id);
            row.put("name", api.name);
            row.put("min", type.lowestSupportedVersion());
            row.put("max", type.highestSupportedVersion(false));
            row.put("max_unstable", type.highestSupportedVersion(true));
            row.put("cluster_action", api.clusterAction);
            row.put("forwardable", api.forwardable);
            ArrayNode listeners = row.putArray("listeners");
            type.listeners().forEach(listener -> listeners.add(listener.name()));
            ArrayNode requests = row.putArray("request_headers");
            ArrayNode responses = row.putArray("response_headers");
            for (short v = type.lowestSupportedVersion(); v <= type.highestSupportedVersion(true); v++) {
                requests.add(type.requestHeaderVersion(v));
                responses.add(type.responseHeaderVersion(v));
            }
        }
        return all;
    }
}
