//! The client over real sockets, against a link and a site that the tests play themselves.

mod connecting;
mod link;
mod polling;
mod pushing;
mod rooms;
mod site;
mod viewer;
