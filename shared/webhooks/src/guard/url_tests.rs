use proptest::prelude::*;

use super::*;

fn refused(raw: &str) -> UrlRefusal {
    EndpointUrl::parse(raw, Policy::public()).expect_err(raw)
}

fn accepted(raw: &str) -> String {
    let url = EndpointUrl::parse(raw, Policy::public()).unwrap_or_else(|refusal| panic!("{raw}: {refusal}"));
    url.as_str().to_owned()
}

#[test]
fn ordinary_urls_are_accepted_as_the_parser_reads_them() {
    for (raw, read) in [
        ("https://hooks.example.com/in?token=a%20b", "https://hooks.example.com/in?token=a%20b"),
        ("http://hooks.example.com", "http://hooks.example.com/"),
        ("HTTPS://Hooks.Example.COM:443/A", "https://hooks.example.com/A"),
        ("https://hooks.example.com:8443/", "https://hooks.example.com:8443/"),
        ("https://hooks.example.com:1024/", "https://hooks.example.com:1024/"),
        ("https://hooks.example.com:65535/", "https://hooks.example.com:65535/"),
        ("https://hooks.example.com:80/", "https://hooks.example.com:80/"),
        ("http://hooks.example.com:443/", "http://hooks.example.com:443/"),
        ("https://hooks.example.com./", "https://hooks.example.com./"),
        ("https://a_b.example-1.co/", "https://a_b.example-1.co/"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("https://localhost.example.com/", "https://localhost.example.com/"),
        ("https://mylocalhost.com/", "https://mylocalhost.com/"),
        ("https://local.internal.example/", "https://local.internal.example/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("http://0x08080808/", "http://8.8.8.8/"),
        ("http://[2606:4700:4700::1111]:8080/", "http://[2606:4700:4700::1111]:8080/"),
        ("http://hooks.example.com/@user:pass", "http://hooks.example.com/@user:pass"),
        ("http://hooks.example.com/?a=b|c^d`e", "http://hooks.example.com/?a=b|c^d`e"),
    ] {
        assert_eq!(accepted(raw), read);
    }
}

#[test]
fn no_spelling_of_an_address_gets_past() {
    let v4 = "
        127.0.0.1 127.1 127.0.1 127.0.0.1. 2130706433 2130706433. 017700000001 0x7f000001 0X7F000001 0x7f.1
        0177.0.0.1 0177.0.0x1 127.0.0.01 00000177.1 0x0000007f.0x0.1 127.0x1 １２７.０.０.１ １２７。０。０。１ 127｡0｡0｡1
        ①②⑦.⓪.⓪.① 127．0．0．1 %31%32%37.0.0.1 127%2e0%2E0%2e1 %30x7f.1 0%78%37%66.1 %EF%BC%91%EF%BC%92%EF%BC%97.1
        𝟏𝟐𝟕.𝟎.𝟎.𝟏 127.0.0.\u{ad}1 127.0.0.1\u{200b} 0 0.0.0.0 0x 0x.0x 00 127.0.0.0 127.255.255.255 10.0.0.1
        10.1 167772161 0xa000001 012.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 192.168.1 0xc0a80001 3232235521
        169.254.169.254 2852039166 0xa9fea9fe 0xA9.0xFE.0xA9.0xFE 0251.0376.0251.0376 169.254.43518 100.64.0.1
        192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255
        240.0.0.1 255.255.255.255 4294967295 0xffffffff 037777777777
    "
    .split_whitespace();
    let v6 = "
        :: ::1 0:0:0:0:0:0:0:1 0000:0000:0000:0000:0000:0000:0000:0001 ::0001 ::127.0.0.1 ::7f00:1
        ::ffff:127.0.0.1 ::FFFF:7f00:1 0:0:0:0:0:ffff:127.0.0.1 ::ffff:0:127.0.0.1 ::ffff:169.254.169.254
        ::ffff:8.8.8.8 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b::8.8.8.8 64:ff9b:1::10.0.0.1 2002:7f00:1::
        2002:a9fe:a9fe::1 2002:808:808:: 2001::1 2001:0:7f00:1:: 2001:0:0:0:0:0:80ff:fffe fc00::1 fd00:ec2::254
        fe80::1 febf::1 fec0::1 ff02::1 2001:db8::1 3fff::1 5f00::1 100::1 2001:2::1 2001:10::1 2001:20::1
        2606:4700::5efe:10.0.0.1 4000::1
    "
    .split_whitespace();
    let v6 = v6.map(|address| format!("[{address}]"));
    for host in v4.map(str::to_owned).chain(v6) {
        for raw in [
            format!("http://{host}/"),
            format!("https://{host}:8443/hook?a=b"),
            format!("http:{host}"),
            format!("http:\\\\{host}\\x"),
            format!("http:////{host}"),
            format!("hTTp://{host}?x"),
        ] {
            assert_eq!(refused(&raw), UrlRefusal::Address, "{raw}");
        }
    }
}

#[test]
fn what_only_looks_like_an_address_is_no_host() {
    for raw in "
        http://127.0.0.256/ http://256.0.0.1/ http://1.2.3.4.5/ http://0x100000000/ http://4294967296/
        http://127.0.0.08/ http://127.0.0.0x7g.1/ http://127..1/ http://example.1/ http://example.0x1/
        http://[::1/ http://::1/ http://[::1%25lo]/ http://[fe80::1%eth0]/ http://[127.0.0.1]/
        http://[::ffff:127.1]/ http://[v1.fe80::a]/ http://[]/ http://1.0.0.127%00.example/
        http://127.0.0.1%20.example/ http://127.0.0.1%23.example/ http://a%2fb.example/ http://a%5Cb.example/
        http://a%40b.example/ http://a%3A80.example/ http://%zz.example/ http://a<b.example/ http:/// http://
        http: https://?x  x /hook //hooks.example.com/ hooks.example.com/hook http://:80/
        http://hooks.example.com:65536/ http://hooks.example.com:99999999999/ http://hooks.example.com:-1/
        http://hooks.example.com:80x/ http://xn--localhost-/ http://xn--a/ http://user@/ http://\u{ad}/
        http://%C2%AD/
    "
    .split_whitespace()
    {
        assert_eq!(refused(raw), UrlRefusal::Malformed, "{raw}");
    }
}

#[test]
fn names_of_the_inside_are_refused_in_every_spelling() {
    for host in "
        localhost localhost. LOCALHOST LocalHost. ｌｏｃａｌｈｏｓｔ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ loc%61lhost %6c%6f%63%61%6c%68%6f%73%74
        localhost。 local\u{ad}host local\u{200b}host localhoſt 𝓁ocalhost a.localhost a.b.LOCALHOST. a。localhost
        a．ｌocalhost printer.local printer.LOCAL. printer｡local printer.ｌｏｃａｌ printer.loca%6C
        metadata.google.internal metadata.google.internal. ip-10-0-0-1.ec2.INTERNAL ip-10-0-0-1.ec2.ⁱnternal
        ip-10-0-0-1.eu-central-1.compute.internal instance-data instance-data.ec2.internal
        intranet db db. com xn--bcher-kva bücher
    "
    .split_whitespace()
    {
        for raw in [format!("http://{host}/"), format!("https://{host}:8443/"), format!("https:\\\\{host}")] {
            assert_eq!(refused(&raw), UrlRefusal::LocalName, "{raw}");
        }
    }
}

#[test]
fn a_host_is_a_name_the_dns_can_hold() {
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    assert_eq!(longest.len(), 253);
    accepted(&format!("http://{longest}/"));
    accepted(&format!("http://{longest}./"));
    let hosts = format!(
        "{longest}b a{label}.com a..example.com .example.com example.com.. localhost.. . a!b.example a*.example \
         a,b.example $(id).example a'b.example"
    );
    for host in hosts.split_whitespace() {
        assert_eq!(refused(&format!("http://{host}/")), UrlRefusal::Name, "{host}");
    }
}

#[test]
fn nothing_unseen_stands_in_the_text() {
    for raw in [
        " http://hooks.example.com/",
        "http://hooks.example.com/ ",
        "http://hooks.example.com/a b",
        "\nhttp://a.example",
        "http://a.example\n",
        "ht\ntp://a.example",
        "http://a.exa\tmple",
        "http://127.0.\r\n0.1/",
        "http://a.example/\0",
        "http://a.example/\u{7f}",
        "http://a.example/\u{85}",
        "http://a.example/\u{a0}",
        "http://a.example/\u{3000}",
        "http://a.example/\u{2028}",
        "\u{1}http://a.example/",
        "http://a.example/?\u{1b}[0m",
        "http://a.example/#\n",
    ] {
        assert_eq!(refused(raw), UrlRefusal::Character, "{raw:?}");
    }
}

#[test]
fn scheme_user_info_fragment_and_port_are_bounded() {
    use UrlRefusal::{Fragment, Port, Scheme, UserInfo};
    for (urls, refusal) in [
        ("ftp://hooks.example.com/ file:///etc/passwd ws://hooks.example.com/ gopher://127.0.0.1:6379/_x", Scheme),
        ("javascript:alert(1) data:,x localhost:8080 unix:/run/docker.sock httpss://hooks.example.com/", Scheme),
        ("http://user@hooks.example.com/ http://user:pass@hooks.example.com/", UserInfo),
        ("http://:pass@hooks.example.com/ http://@hooks.example.com/ http://:@hooks.example.com/", UserInfo),
        ("http://hooks.example.com@127.0.0.1/ http://hooks.example.com:80@127.0.0.1/", UserInfo),
        ("http://a@b@hooks.example.com/ http:/\\user@hooks.example.com/", UserInfo),
        ("http://hooks.example.com/# http://hooks.example.com/#top http://hooks.example.com#@127.0.0.1/", Fragment),
        ("http://hooks.example.com:0/ http://hooks.example.com:22/ http://hooks.example.com:00025/", Port),
        ("http://hooks.example.com:79/ http://hooks.example.com:81/ https://hooks.example.com:444/", Port),
        ("https://8.8.8.8:53/ http://hooks.example.com:1023/", Port),
    ] {
        for raw in urls.split_whitespace() {
            assert_eq!(refused(raw), refusal, "{raw}");
        }
    }
}

#[test]
fn length_is_limited_as_written_and_as_called() {
    let ending_in = |path: &str| format!("https://hooks.example.com/{path}");
    let called = |emoji: usize, letters: usize| ending_in(&("😀".repeat(emoji) + &"a".repeat(letters)));
    // Each emoji is one character as written, and twelve as called.
    for (emoji, letters) in [(0, 2_022), (1, 2_010), (168, 6)] {
        assert_eq!(accepted(&called(emoji, letters)).len(), 2_048);
        assert_eq!(refused(&called(emoji, letters + 1)), UrlRefusal::TooLong);
    }
    // The parser would shorten this one.
    assert_eq!(refused(&ending_in(&"./".repeat(1_012))), UrlRefusal::TooLong);
    assert_eq!(
        UrlRefusal::TooLong.to_string(),
        "must have at most 2,048 characters, as written and after percent-encoding"
    );
}

#[test]
fn development_opens_its_own_machine_and_nothing_else() {
    let parse = |raw: &str| EndpointUrl::parse(raw, Policy::with_loopback());
    for raw in "
        http://127.0.0.1:9000/hook http://127.1.2.3/ https://[::1]:9000/ http://localhost:9000/ http://LOCALHOST./
        http://localhost:81/ http://127.0.0.1:22/ https://hooks.example.com/
    "
    .split_whitespace()
    {
        assert!(parse(raw).is_ok(), "{raw}");
    }
    for (urls, refusal) in [
        ("http://10.0.0.1/ http://0.0.0.0:9000/ http://[::]:9000/ http://169.254.169.254/", UrlRefusal::Address),
        ("http://[::ffff:127.0.0.1]:9000/", UrlRefusal::Address),
        ("http://a.localhost:9000/ http://db:9000/", UrlRefusal::LocalName),
        ("http://hooks.example.com:81/ http://8.8.8.8:81/", UrlRefusal::Port),
        ("http://user@127.0.0.1:9000/", UrlRefusal::UserInfo),
        ("ftp://127.0.0.1/", UrlRefusal::Scheme),
    ] {
        for raw in urls.split_whitespace() {
            assert_eq!(parse(raw), Err(refusal), "{raw}");
        }
    }
}

/// Generates hosts of all kinds, valid ones and random pieces.
fn hosts() -> impl Strategy<Value = String> {
    let pieces = "localhost local internal example com 127 0x7f 0177 1 0 . 。 %2e %00 @ : [ ] :: ffff xn-- - _ \
                  é ａ １ \u{ad} \\ / ? # % \t 80 8080";
    let piece = prop::sample::select(pieces.split(' ').collect::<Vec<_>>());
    prop_oneof![
        prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat()),
        any::<u32>().prop_map(|bits| std::net::Ipv4Addr::from_bits(bits).to_string()),
        any::<u128>().prop_map(|bits| format!("[{}]", std::net::Ipv6Addr::from_bits(bits))),
        "\\PC{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_048))]

    #[test]
    fn what_is_accepted_is_what_the_client_connects_to(host in hosts(), tail in "\\PC{0,16}", loopback: bool) {
        let policy = if loopback { Policy::with_loopback() } else { Policy::public() };
        let Ok(url) = EndpointUrl::parse(&format!("http://{host}/{tail}"), policy) else { return Ok(()) };
        let parsed = Url::parse(url.as_str()).unwrap();
        prop_assert_eq!(url.uri().host(), parsed.host_str());
        prop_assert_eq!(url.uri().port_u16(), parsed.port());
        prop_assert_eq!(url.uri().scheme_str(), Some(parsed.scheme()));
        prop_assert_eq!(EndpointUrl::parse(url.as_str(), policy), Ok(url.clone()));
        if let Ok(address) = url.uri().host().unwrap().trim_matches(['[', ']']).parse() {
            prop_assert!(policy.allows(address));
        }
    }

    #[test]
    fn each_number_for_an_ipv4_address_is_judged_as_that_address(bits: u32, form in 0..5) {
        let address = std::net::Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = address.octets();
        let host = match form {
            0 => format!("{bits}"),
            1 => format!("{bits:#x}"),
            2 => format!("0{bits:o}"),
            3 => format!("{a:#x}.0{b:o}.{}", u32::from(c) << 8 | u32::from(d)),
            _ => format!("{a}.{b}.{c}.{d}."),
        };
        let url = EndpointUrl::parse(&format!("http://{host}/"), Policy::public());
        if crate::guard::public::is_public(address.into()) {
            prop_assert_eq!(url.map(|url| url.to_string()), Ok(format!("http://{address}/")));
        } else {
            prop_assert_eq!(url, Err(UrlRefusal::Address));
        }
    }
}
