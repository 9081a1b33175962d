import java.io.IOException;
import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.Provider;
import java.security.Security;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.SaslException;
import javax.security.sasl.SaslServer;
import javax.security.sasl.SaslServerFactory;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/** Lets in who has signed AWS's request to connect (SigV4 in the query) with the lab's key, for its region, lately. */
public class SignedRequests implements AuthenticateCallbackHandler {
    private static final String MECHANISM = "AWS_MSK_IAM";
    private static final Pattern FIELD = Pattern.compile("\"([^\"]+)\"\\s*:\\s*\"([^\"]*)\"");
    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);
    private Map<String, ?> options;

    static {
        Security.addProvider(new Mechanism());
    }

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        options = entries.get(0).getOptions();
    }

    @Override
    public void handle(Callback[] callbacks) {
        for (Callback each : callbacks) {
            if (each instanceof Request request) {
                request.principal = principalOf(request.json);
            }
            if (!(each instanceof OAuthBearerValidatorCallback callback)) {
                continue; // extensions, of which AWS's clients send none that counts
            }
            try {
                callback.token(checked(callback.tokenValue()));
            } catch (Exception refused) {
                callback.error("invalid_token", null, null);
            }
        }
    }

    @Override
    public void close() {
    }

    private OAuthBearerToken checked(String value) throws Exception {
        URI uri = URI.create(new String(Base64.getUrlDecoder().decode(value), StandardCharsets.UTF_8));
        TreeMap<String, String> query = new TreeMap<>();
        for (String pair : uri.getRawQuery().split("&")) {
            String[] parts = pair.split("=", 2);
            query.put(parts[0], URLDecoder.decode(parts.length > 1 ? parts[1] : "", StandardCharsets.UTF_8));
        }
        query.remove("User-Agent");
        require(uri.getHost().equals("kafka." + options.get("region") + ".amazonaws.com"));
        long[] lives = check(query, uri.getHost());
        return token(value, lives[1], lives[0]);
    }

    /** The principal of a request in AWS_MSK_IAM's form, JSON with all names in lower case; null if it is refused. */
    private String principalOf(String json) {
        TreeMap<String, String> said = new TreeMap<>();
        FIELD.matcher(json).results().forEach(field -> said.put(field.group(1), field.group(2)));
        TreeMap<String, String> query = new TreeMap<>();
        for (String name : List.of("Action", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires",
                "X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders")) {
            if (said.get(name.toLowerCase(Locale.ROOT)) != null) {
                query.put(name, said.get(name.toLowerCase(Locale.ROOT)));
            }
        }
        try {
            check(query, said.get("host"));
            return (String) options.get("principal");
        } catch (Exception refused) {
            return null;
        }
    }

    /** Returns when the request was signed and when it ends, in milliseconds; throws if it is not to be let in. */
    private long[] check(TreeMap<String, String> query, String host) throws Exception {
        byte[] signature = HexFormat.of().parseHex(query.remove("X-Amz-Signature"));
        String[] scope = query.get("X-Amz-Credential").split("/");
        String region = (String) options.get("region");
        require(scope[0].equals(options.get("key")) && scope[2].equals(region) && scope[3].equals("kafka-cluster"));
        require(query.get("Action").equals("kafka-cluster:Connect"));
        Instant signedAt = Instant.from(TIME.parse(query.get("X-Amz-Date")));
        Instant ends = signedAt.plusSeconds(Long.parseLong(query.get("X-Amz-Expires")));
        require(Instant.now().isBefore(ends) && Instant.now().plusSeconds(60).isAfter(signedAt));

        StringBuilder asked = new StringBuilder();
        query.forEach((name, text) -> asked.append("&").append(quoted(name)).append("=").append(quoted(text)));
        String request = "GET\n/\n" + asked.substring(1) + "\nhost:" + host + "\n\nhost\n" + hash("");
        String whole = String.join("/", scope[1], scope[2], scope[3], scope[4]);
        String text = "AWS4-HMAC-SHA256\n" + query.get("X-Amz-Date") + "\n" + whole + "\n" + hash(request);
        byte[] key = ("AWS4" + options.get("secret")).getBytes(StandardCharsets.UTF_8);
        for (int part = 1; part < 5; part++) {
            key = mac(key, scope[part]);
        }
        require(MessageDigest.isEqual(mac(key, text), signature));
        return new long[] {signedAt.toEpochMilli(), ends.toEpochMilli()};
    }

    private OAuthBearerToken token(String value, long ends, long begins) {
        return new OAuthBearerToken() {
            @Override
            public String value() {
                return value;
            }

            @Override
            public Set<String> scope() {
                return Set.of();
            }

            @Override
            public long lifetimeMs() {
                return ends;
            }

            @Override
            public String principalName() {
                return (String) options.get("principal");
            }

            @Override
            public Long startTimeMs() {
                return begins;
            }
        };
    }

    private static void require(boolean holds) {
        if (!holds) {
            throw new IllegalArgumentException();
        }
    }

    private static String quoted(String text) {
        String encoded = URLEncoder.encode(text, StandardCharsets.UTF_8);
        return encoded.replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
    }

    private static String hash(String text) throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        return HexFormat.of().formatHex(digest);
    }

    private static byte[] mac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    /** What a client of AWS_MSK_IAM sent, and who that is. */
    private static class Request implements Callback {
        final String json;
        String principal;

        Request(String json) {
            this.json = json;
        }
    }

    public static class Mechanism extends Provider {
        public Mechanism() {
            super("lab-" + MECHANISM, "1", "the broker's side of Amazon's mechanism");
            put("SaslServerFactory." + MECHANISM, Factory.class.getName());
        }
    }

    public static class Factory implements SaslServerFactory {
        @Override
        public SaslServer createSaslServer(
                String mechanism, String protocol, String host, Map<String, ?> settings, CallbackHandler handler) {
            return new Server(handler);
        }

        @Override
        public String[] getMechanismNames(Map<String, ?> settings) {
            return new String[] {MECHANISM};
        }
    }

    private static class Server implements SaslServer {
        private final CallbackHandler handler;
        private String principal;

        Server(CallbackHandler handler) {
            this.handler = handler;
        }

        @Override
        public byte[] evaluateResponse(byte[] response) throws SaslException {
            Request request = new Request(new String(response, StandardCharsets.UTF_8));
            try {
                handler.handle(new Callback[] {request});
            } catch (IOException | UnsupportedCallbackException error) {
                throw new SaslException("no answer", error);
            }
            if (request.principal == null) {
                throw new SaslAuthenticationException("Access denied");
            }
            principal = request.principal;
            return "{\"version\":\"2020_10_22\",\"request-id\":\"lab\"}".getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public boolean isComplete() {
            return principal != null;
        }

        @Override
        public String getAuthorizationID() {
            return principal;
        }

        @Override
        public String getMechanismName() {
            return MECHANISM;
        }

        @Override
        public byte[] unwrap(byte[] incoming, int offset, int length) {
            throw new IllegalStateException();
        }

        @Override
        public byte[] wrap(byte[] outgoing, int offset, int length) {
            throw new IllegalStateException();
        }

        @Override
        public Object getNegotiatedProperty(String name) {
            return null;
        }

        @Override
        public void dispose() {
        }
    }
}
