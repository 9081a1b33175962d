import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/** Lets in who has signed AWS's request to connect (SigV4 in the query) with the lab's key, for its region, lately. */
public class SignedRequests implements AuthenticateCallbackHandler {
    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);
    private Map<String, ?> options;

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        options = entries.get(0).getOptions();
    }

    @Override
    public void handle(Callback[] callbacks) {
        for (Callback each : callbacks) {
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
        byte[] signature = HexFormat.of().parseHex(query.remove("X-Amz-Signature"));
        String[] scope = query.get("X-Amz-Credential").split("/");
        String region = (String) options.get("region");
        require(scope[0].equals(options.get("key")) && scope[2].equals(region) && scope[3].equals("kafka-cluster"));
        require(query.get("Action").equals("kafka-cluster:Connect"));
        require(uri.getHost().equals("kafka." + region + ".amazonaws.com"));
        Instant signedAt = Instant.from(TIME.parse(query.get("X-Amz-Date")));
        Instant ends = signedAt.plusSeconds(Long.parseLong(query.get("X-Amz-Expires")));
        require(Instant.now().isBefore(ends) && Instant.now().plusSeconds(60).isAfter(signedAt));

        StringBuilder asked = new StringBuilder();
        query.forEach((name, text) -> asked.append("&").append(quoted(name)).append("=").append(quoted(text)));
        String request = "GET\n/\n" + asked.substring(1) + "\nhost:" + uri.getHost() + "\n\nhost\n" + hash("");
        String whole = String.join("/", scope[1], scope[2], scope[3], scope[4]);
        String text = "AWS4-HMAC-SHA256\n" + query.get("X-Amz-Date") + "\n" + whole + "\n" + hash(request);
        byte[] key = ("AWS4" + options.get("secret")).getBytes(StandardCharsets.UTF_8);
        for (int part = 1; part < 5; part++) {
            key = mac(key, scope[part]);
        }
        require(MessageDigest.isEqual(mac(key, text), signature));
        return token(value, ends.toEpochMilli(), signedAt.toEpochMilli());
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
}
