// Package h2park takes streams of HTTP/2 away from golang.org/x/net/http2's server, which keeps a
// goroutine, a buffer of 4 KB and the header's maps for as long as a stream is open. A handler that
// waits cannot give them back: net/http has no call for it, and another HTTP/2 server would be ours
// to keep. So the server is left as it is, and a connection of ours stands between it and the
// client. It reads the heads of frames, and lets them pass.
//
// A handler learns its stream by a field that is appended to the request's header block, with a
// secret of the connection. To park its stream it flushes, and [Stream.Park] sends the server two
// frames in the client's name: a RST_STREAM, after which the server forgets the stream, and a PING.
// When the server answers the PING, which the client does not see, all that it had sent of the
// stream is before that answer. From then on DATA and the end of the stream are written here.
//
// What holds:
//
//   - Frames are put in only where another frame may begin, in both directions, and never into a
//     header block.
//   - The server's window for the connection and the pool of the parked streams are together what
//     the client has granted. The server gets a quarter of it at most, so that neither waits while
//     the client waits for the other.
//   - Only those frames of the client are kept from the server that grant credit to the connection.
//     It sees all others, and refuses those that are wrong: for a stream that it has forgotten too.
//   - Streams of the server and parked ones are together no more than the server allows. One more
//     gets a header field that the server refuses it for.
//   - Nothing of a client is kept but a frame's beginning of some 600 bytes, and what the server has
//     still to read, some 20 KB. Of a parked stream it is one frame of DATA.
//   - If the server closes after a GOAWAY without an error, parked streams keep the connection.
//     After any other end they end.
package h2park
