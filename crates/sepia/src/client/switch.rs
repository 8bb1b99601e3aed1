//! Sessions that become tunnels: CONNECT, and protocol switches by Upgrade.
//! RFC 9110 sections 7.8 and 9.3.6.

use std::rc::Rc;

use wire::{Known, Target};

use super::account::{self, Ended};
use super::deliver::{Delivered, Sink};
use super::task::{After, Serving};
use crate::base::{Hop, Reason, millis};
use crate::config::{AddressRule, Role};
use crate::exchange::status::Handling;
use crate::io::Stream;
use crate::origin::connect::connect;
use crate::origin::{Incoming, OriginConnection};
use crate::tunnel::{self, Tunnel};

impl Serving<'_> {
    /// Opens the tunnel that CONNECT asks for.
    pub(super) async fn connect(self) -> After {
        let work = Rc::clone(&self.clients.work);
        let head = self.request.head();
        let (Target::Authority(authority), Role::Forward(forward)) =
            (head.target(), &self.request.site().listener.role)
        else {
            return self.answer_locally(Err(Reason::MethodNotAllowed)).await;
        };
        let host = String::from_utf8_lossy(authority.host);
        let origin = work.origin.origins.origin(&host, authority.port.unwrap_or(443));
        let rule = AddressRule::of_forward(forward, authority, self.request.peer.ip());
        let timeouts = self.request.settings.config.timeouts;
        let connected = {
            let _at = work.at(Hop::Forward);
            connect(&work.origin, &origin, &rule, &timeouts).await
        };
        match connected {
            Ok(connection) => {
                let answer = b"HTTP/1.1 200 Connection established\r\n\
                    Cache-Status: sepia; fwd=method\r\n\r\n";
                self.tunnel(&connection, 200, answer, Vec::new()).await
            }
            Err(reason) => self.answer_locally(Err(reason)).await,
        }
    }

    /// Passes the origin's 101 on; from there on bytes are only carried.
    pub(super) async fn switch(self, incoming: Incoming) -> After {
        let mut answer = Vec::new();
        wire::encode_status_line(&mut answer, 101);
        let fields = incoming.head().fields();
        for field in fields.iter() {
            let switches = field.known == Some(Known::Upgrade);
            if switches || caching::is_stored_field(field, fields) {
                wire::encode_field(&mut answer, field.name, field.value);
            }
        }
        answer.extend_from_slice(b"Connection: Upgrade\r\n");
        let via_line = self.request.settings.via_line(incoming.head().version());
        answer.extend_from_slice(via_line.as_bytes());
        answer.extend_from_slice(b"Cache-Status: sepia; fwd=bypass; detail=upgrade\r\n\r\n");
        let beyond = incoming.buffer[incoming.head_len..].to_vec();
        self.tunnel(&incoming.connection, 101, &answer, beyond).await
    }

    async fn tunnel(
        self,
        connection: &OriginConnection,
        status: u16,
        answer: &[u8],
        from_origin: Vec<u8>,
    ) -> After {
        let work = Rc::clone(&self.clients.work);
        let _at = work.at(Hop::Deliver);
        let (request, stream): (_, &Stream) = (Rc::clone(self.request), self.stream);
        // The answer need not wait for content that the request should not have had.
        let Some(from_client) = self.upload.into_rest() else { return After::Gone };
        let sent = Sink::new(stream, self.patience).deliver(answer).await;
        let handling = Handling::Local(None);
        account::count_handling(&work, handling);
        let mut ended = Ended {
            head: Some(request.head()),
            peer: request.peer,
            status,
            bytes: 0,
            started: request.started,
            cache_status: b"",
            request_id: request.id.as_bytes(),
            reason: None,
        };
        if sent != Delivered::Complete {
            ended.reason = Some(Reason::ClientGone);
        } else {
            let tunnel = Tunnel {
                client: stream,
                origin: connection.stream(),
                from_client,
                from_origin,
                idle: millis(request.settings.config.timeouts.tunnel_idle),
            };
            (ended.bytes, ended.reason) = tunnel::run(tunnel, &work.counters).await;
        }
        if let Some(reason) = ended.reason {
            work.counters.count(reason);
        }
        account::log(&work, &ended);
        After::Gone
    }
}
