# Varnish between viewers and a broadcaster's origin, as nginx.edge.conf. Start it with
# `-p thread_pool_max=5000`, since whoever waits for a slot holds nothing but a session does.
# Lifetimes come from the origin's answers; nothing here sets one. Nor does anything compress: a
# house that writes br or zstd has them handed on as they are.
vcl 4.1;

backend origin {
    .host = "127.0.0.1";
    .port = "7500";
    # The origin holds the next slot for its interval and half a second, 10.5 s at most.
    .first_byte_timeout = 15s;
}

# Who may have files forgotten: the broadcaster, when an item was erased.
acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) {
            return (synth(405));
        }
        return (purge);
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (synth(405));
    }
    # Paths have one spelling, and nothing else makes a difference.
    unset req.http.Cookie;
    return (hash);
}

# A path is one file under whatever name viewers know this cache by: a PURGE comes with another.
sub vcl_hash {
    hash_data(req.url);
    return (lookup);
}

sub vcl_backend_response {
    # Old heads are better than none: the origin says for how long in `stale-if-error`.
    if (bereq.url ~ "/head\.json$") {
        set beresp.keep = 60s;
    }
    return (deliver);
}
