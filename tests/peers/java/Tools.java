import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command line tools in one JVM, since a JVM for each call takes longer than the call.
 *
 * <pre>
 * {"main": class, "args": [...], "stdin": text}    {"code": exit code, "out": text, "err": text}
 * </pre>
 */
public final class Tools {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** What a tool's call of exit becomes. */
    private static final class Exited extends RuntimeException {
        final int code;

        Exited(int code) {
            super("exit " + code, null, false, false);
            this.code = code;
        }
    }

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            throw new Exited(code);
        });
        Exit.setHaltProcedure((code, message) -> {
            throw new Exited(code);
        });
        Exit.setShutdownHookAdder((name, hook) -> { });
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            answers.println(MAPPER.writeValueAsString(run(MAPPER.readTree(line))));
        }
    }

    private static ObjectNode run(JsonNode asked) throws Exception {
        String[] args = MAPPER.convertValue(asked.get("args"), String[].class);
        var out = new ByteArrayOutputStream();
        var err = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setIn(new ByteArrayInputStream(
            asked.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
        int code = 0;
        try {
            Class.forName(asked.get("main").asText())
                .getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException ended) {
            code = 1;
            Throwable cause = ended.getCause();
            while (cause != null && !(cause instanceof Exited)) cause = cause.getCause();
            if (cause instanceof Exited exited) code = exited.code;
            else ended.getCause().printStackTrace();
        }
        System.out.flush();
        System.err.flush();
        ObjectNode answer = MAPPER.createObjectNode();
        answer.put("code", code);
        answer.put("out", out.toString(StandardCharsets.UTF_8));
        answer.put("err", err.toString(StandardCharsets.UTF_8));
        return answer;
    }
}
