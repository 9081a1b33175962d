import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
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
import javax.security.auth.callback.NameCallback;
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
    private static final List<String> SIGNED = List.of("Action", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date",
        "X-Amz-Expires", "X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders");
    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);
    private Map<String, ?> options;

    static {
        Provider provider = new Provider("lab-" + MECHANISM, "1", "the broker's side of Amazon's mechanism") { };
        provider.put("SaslServerFactory." + MECHANISM, Factory.class.getName());
        Security.addProvider(provider);
    }

    private record Token(String value, long lifetimeMs, String principalName, Long startTimeMs, Set<String> scope)
        implements OAuthBearerToken { }

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        options = entries.get(0).getOptions();
    }

    @Override
    public void handle(Callback[] callbacks) {
        for (Callback each : callbacks) {
            try {
                if (each instanceof NameCallback request) {
                    checkJson(request.getPrompt());
                    request.setName(option("principal"));
                } else if (each instanceof OAuthBearerValidatorCallback login) {
                    login.token(checkedToken(login.tokenValue()));
                } // else extensions, of which AWS's clients send none that counts
            } catch (Exception refused) {
                if (each instanceof OAuthBearerValidatorCallback login) {
                    login.error("invalid_token", null, null);
                }
            }
        }
    }

    @Override
    public void close() { }

    private String option(String name) {
        return (String) options.get(name);
    }

    private Token checkedToken(String value) throws Exception {
        URI uri = URI.create(new String(Base64.getUrlDecoder().decode(value), UTF_8));
        TreeMap<String, String> query = new TreeMap<>();
        for (String pair : uri.getRawQuery().split("&")) {
            String[] parts = pair.split("=", 2);
            query.put(parts[0], URLDecoder.decode(parts.length > 1 ? parts[1] : "", UTF_8));
        }
        query.remove("User-Agent");
        require(uri.getHost().equals("kafka." + option("region") + ".amazonaws.com"));
        Instant[] life = check(query, uri.getHost());
        return new Token(value, life[1].toEpochMilli(), option("principal"), life[0].toEpochMilli(), Set.of());
    }

    /** Check a request in AWS_MSK_IAM's form, JSON with all names in lower case. */
    private void checkJson(String json) throws Exception {
        TreeMap<String, String> said = new TreeMap<>(), query = new TreeMap<>();
        FIELD.matcher(json).results().forEach(field -> said.put(field.group(1), field.group(2)));
        for (String name : SIGNED) {
            if (said.containsKey(name.toLowerCase(Locale.ROOT))) {
                query.put(name, said.get(name.toLowerCase(Locale.ROOT)));
            }
        }
        check(query, said.get("host"));
    }

    /** Returns when the request was signed and when it ends; throws if it is not to be let in. */
    private Instant[] check(TreeMap<String, String> query, String host) throws Exception {
        byte[] signature = HexFormat.of().parseHex(query.remove("X-Amz-Signature"));
        String[] scope = query.get("X-Amz-Credential").split("/");
        require(scope[0].equals(option("key")) && scope[2].equals(option("region")) && scope[3].equals("kafka-cluster"));
        require(query.get("Action").equals("kafka-cluster:Connect"));
        Instant signedAt = Instant.from(TIME.parse(query.get("X-Amz-Date")));
        Instant ends = signedAt.plusSeconds(Long.parseLong(query.get("X-Amz-Expires")));
        require(Instant.now().isBefore(ends) && Instant.now().plusSeconds(60).isAfter(signedAt));

        StringBuilder asked = new StringBuilder();
        query.forEach((name, text) -> asked.append("&").append(quoted(name)).append("=").append(quoted(text)));
        String request = "GET\n/\n" + asked.substring(1) + "\nhost:" + host + "\n\nhost\n" + hash("");
        String whole = String.join("/", scope[1], scope[2], scope[3], scope[4]);
        String text = "AWS4-HMAC-SHA256\n" + query.get("X-Amz-Date") + "\n" + whole + "\n" + hash(request);
        byte[] key = ("AWS4" + option("secret")).getBytes(UTF_8);
        for (int part = 1; part < 5; part++) {
            key = mac(key, scope[part]);
        }
        require(MessageDigest.isEqual(mac(key, text), signature));
        return new Instant[] {signedAt, ends};
    }

    private static void require(boolean holds) {
        if (!holds) {
            throw new IllegalArgumentException();
        }
    }

    private static String quoted(String text) {
        return URLEncoder.encode(text, UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
    }

    private static String hash(String text) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)));
    }

    private static byte[] mac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(UTF_8));
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
            NameCallback request = new NameCallback(new String(response, UTF_8));
            try {
                handler.handle(new Callback[] {request});
            } catch (IOException | UnsupportedCallbackException error) {
                throw new SaslException("no answer", error);
            }
            principal = request.getName();
            if (principal == null) {
                throw new SaslAuthenticationException("Access denied");
            }
            return "{\"version\":\"2020_10_22\",\"request-id\":\"lab\"}".getBytes(UTF_8);
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
        public void dispose() { }
    }
}
