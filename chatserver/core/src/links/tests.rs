//! Links and contacts, found and not.

use proptest::prelude::*;

use super::*;

fn folded(text: &str) -> Folded {
    let mut folded = Folded::default();
    folded.fold(text, fold::Reading::Plain);
    folded
}

fn leads(text: &str) -> Vec<Lead> {
    let found = std::cell::RefCell::new(Vec::new());
    find(text, &folded(text), |it| {
        found.borrow_mut().push(it.clone());
        Action::Refuse
    });
    found.into_inner()
}

fn link(text: &str, host: &str) {
    assert!(leads(text).contains(&Lead::Link(host.to_owned())), "{text:?}: {:?}", leads(text));
}

#[test]
fn links_are_found_however_they_are_written() {
    link("see https://Example.com/x?y", "example.com");
    link("www.example.co.jp", "example.co.jp");
    link("来baidu.com看", "baidu.com");
    link("ｂａｉｄｕ．ｃｏｍ", "baidu.com");
    link("baidu。com", "baidu.com");
    link("baidu点com", "baidu.com");
    link("baidu [dot] com", "baidu.com");
    link("baidu dot com now", "baidu.com");
    link("bai\u{200B}du.c\u{AD}om", "baidu.com");
    link("t.me/joinchat", "t.me");
    link("go 10.1.2.3:8080", "10.1.2.3");
    link("加10.1.2.3:8080", "10.1.2.3");
    link("点击https://evil.best/x", "evil.best");
    link("看www.evil.best", "evil.best");
    link("baidu点com来", "baidu.com");
    link("163点com", "163.com");
}

#[test]
fn contacts_are_found_however_they_are_written() {
    for text in [
        "someone@example.com",
        "someone (at) example.com",
        "13812345678",
        "138-1234-5678",
        "1 3 8 1 2 3 4 5 6 7 8",
        "一三八一二三四五六七八",
        "幺三八幺二三四五六七八",
        "①③⑧①②③④⑤⑥⑦⑧",
        "+44 20 7946 0958",
        "(555) 123-4567",
        "one three eight one two three four five six seven eight",
        "加微信 abc12345",
        "VX:abc12345",
        "QQ群 123456789",
        "加我微信号：abc12345",
        "line id: abc12",
        "IG: abc_123",
    ] {
        assert!(leads(text).contains(&Lead::Contact), "{text:?}: {:?}", leads(text));
    }
}

#[test]
fn ordinary_texts_lead_nowhere() {
    for text in [
        "666666666666",
        "2333333",
        "16666666666",
        "前方高能。come on",
        "call.me maybe",
        "win.win",
        "3.14159",
        "so...it is",
        "一二三四五六七",
        "1080p 60fps",
        "2026-11-29 20:00",
        "100000000人气",
        "10:9 我赢了",
        "one two three",
        "QQ飞车手游",
        "微信支付",
        "IG加油666666",
        "ig牛逼23333333",
        "qq飞车66666",
        "卫星发射66666",
        "企鹅好可爱23333333",
        "line 2026-11-29",
        "20点vip专场",
        "20点 vip 专场",
        "no.1",
        "e.g. this",
    ] {
        assert_eq!(leads(text), [], "{text:?}");
    }
}

#[test]
fn an_allowed_host_lets_hosts_below_it_pass() {
    let allowed = ["example.com".to_owned()];
    let found = |text: &str| {
        find(text, &folded(text), |it| match it {
            Lead::Link(host) if is_below(host, &allowed) => Action::Allow,
            Lead::Link(_) | Lead::Contact => Action::Refuse,
        })
    };

    assert_eq!(found("https://shop.example.com/1"), Action::Allow);
    assert_eq!(found("https://evil-example.com"), Action::Refuse);
    assert_eq!(found("example.com evil.com"), Action::Refuse);
}

proptest! {
    #[test]
    fn any_text_is_read(text in any::<String>()) {
        let _leads = leads(&text);
    }
}
