// A webhook receiver. Run: WEBHOOK_SECRET=whsec_… PORT=8080 go run receive.go (Go 1.21, standard library only)
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const tolerance = 5 * time.Minute

// isGenuine reports whether the service sent the body, unchanged and recently. body is the raw body, before any parsing.
func isGenuine(secret string, headers http.Header, body []byte) bool {
	id, timestamp := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	// During a secret rotation there are several signatures, separated by spaces; one valid signature is enough.
	for _, given := range strings.Split(headers.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(given), expected) {
			return true
		}
	}
	return false
}

func main() {
	secret := os.Getenv("WEBHOOK_SECRET")
	if !strings.HasPrefix(secret, "whsec_") {
		log.Fatal("Set WEBHOOK_SECRET to the secret of the endpoint")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	// An event may arrive more than once. Store its id with your data, in the transaction that handles the event.
	var handled sync.Map
	http.HandleFunc("/", func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 1<<20))
		if err != nil || !isGenuine(secret, request.Header, body) {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		var event struct{ ID, Type string }
		if err := json.Unmarshal(body, &event); err != nil {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		if _, again := handled.LoadOrStore(event.ID, true); !again {
			fmt.Println(event.ID, event.Type)
		}
		// Respond immediately and work later: after 15 seconds the attempt counts as failed and the event is sent again.
		response.WriteHeader(http.StatusNoContent)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening")
	log.Fatal(http.Serve(listener, nil))
}
